"""From files to a policy that may be used: compiled, held against the fields that questions have, and probed.

Policy process and examiner of the command line share this code, so that both refuse the same policies.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from workers.rego.evaluator import CompiledPolicy, PolicyError
from workers.rego.inputs import input_problems
from workers.rego.probe import probe


def candidate(
    modules: Mapping[str, str], data: str, deadline: AbstractContextManager[None], more: Sequence[str] = ()
) -> CompiledPolicy:
    """Compile and try. Arguments are those of CompiledPolicy; each probe is asked inside `deadline`.

    Raises PolicyError with every problem that is seen before it is asked anything, or with the first of the probes.
    """
    problems = input_problems(modules)
    try:
        policy = CompiledPolicy(modules, data, more)
    except PolicyError as error:
        raise PolicyError([*error.problems, *problems]) from None
    problems = problems or policy.input_problems(modules)
    if problems:
        raise PolicyError(problems)
    probe(policy, data, deadline)
    return policy
