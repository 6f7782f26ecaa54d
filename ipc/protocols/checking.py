"""The channels of the processes of `gateway check` and `gateway policy`: short-lived, one question at a time."""

from ipc.channel.protocol_states import Table, pair
from ipc.messages.checking import CheckFiles, Evaluate, Evaluated, Examine, Examined, FilesChecked, FoundProblem
from ipc.messages.modules import LoadModules, ModulesLoaded

SUPERVISOR_TO_CHECKER: Table = {("new", CheckFiles): "asked"}
CHECKER_TO_SUPERVISOR: Table = {("open", FoundProblem): "open", ("open", FilesChecked): "done"}
TO_MODULE_CHECKER: Table = {("open", LoadModules): "open"}
FROM_MODULE_CHECKER: Table = {("open", ModulesLoaded): "open"}
TO_EXAMINER: Table = {
    ("empty", Examine): "loaded",
    ("loaded", Examine): "loaded",
    ("loaded", Evaluate): "loaded",
}
FROM_EXAMINER: Table = {("open", Examined): "open", ("open", Evaluated): "open"}

pair(SUPERVISOR_TO_CHECKER, "new", CHECKER_TO_SUPERVISOR, "open")
pair(TO_MODULE_CHECKER, "open", FROM_MODULE_CHECKER, "open")
pair(TO_EXAMINER, "empty", FROM_EXAMINER, "open")
