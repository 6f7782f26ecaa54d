// Verifies one evidence bundle offline: verify BUNDLE.json --origin-key VKEY [--receipt-keys JWKS.json]
// [--operator-jkt JKT]... The checks of gatectl verify, except for witnesses. Exit code 0: proven; 1: not proven; 2: usage,
// or nothing to read.
package main

import (
	"bytes"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	noteHead = regexp.MustCompile(`^([^\x00-\x1f]+)\n(0|[1-9][0-9]{0,17})\n([^\x00-\x1f]+)\ntime=([0-9T:.-]+Z) unresolved=(?:0|[1-9][0-9]{0,17})\n([^\x00-\x1f]+\n)*$`)
	noteLine = regexp.MustCompile(`— ([^ +\x00-\x1f]+) ([A-Za-z0-9+/]+={0,2})\n`)
)

// maxNote is how many characters a checkpoint may have.
const maxNote = 16384

// require ends the program where something does not fit.
func require(holds bool, reason, format string, values ...any) {
	if !holds {
		fmt.Printf("not proven (%s): %s\n", reason, fmt.Sprintf(format, values...))
		os.Exit(map[bool]int{true: 2, false: 1}[reason == "unreadable"])
	}
}

func hash(parts ...[]byte) []byte { sum := sha256.Sum256(bytes.Join(parts, nil)); return sum[:] }
func hashText(data []byte) string { return fmt.Sprintf(`"sha256:%x"`, hash(data)) }

func unbase64(text, reason string) []byte {
	data, err := base64.StdEncoding.DecodeString(text)
	require(err == nil && base64.StdEncoding.EncodeToString(data) == text, reason, "%+q is not base64.", text)
	return data
}

// same requires that two objects agree; "a=b" is a in the one and b in the other.
func same(one, other object, both, names string) {
	for _, name := range strings.Fields(names) {
		pair := append(strings.Split(name, "="), name)
		require(one.text(pair[0]) == other.text(pair[1]), "disagreement", "The %s differ in %s.", both, pair[0])
	}
}

// checkpoint checks a note by the log's key; returns its lines from [1], as noteHead has them.
func checkpoint(note, origin, vkey string) []string {
	parts := append(strings.SplitN(vkey, "+", 3), "", "")
	key := unbase64(parts[2], "unreadable")
	require(parts[0] != "" && len(key) == 33 && key[0] == 1, "unreadable", "%+q is not a verifier key.", vkey)
	id := hash([]byte(parts[0]+"\n"), key)[:4]
	require(fmt.Sprintf("%x", id) == parts[1], "unreadable", "%+q has not its own id.", vkey)
	text, rest, _ := strings.Cut(note, "\n\n")
	lines, other := noteHead.FindStringSubmatch(text+"\n"), noteLine.ReplaceAllString(rest, "")
	require(utf8.RuneCountInString(note) <= maxNote && lines != nil && rest != "" && other == "", "note_malformed", "The checkpoint has another form.")
	require(lines[1] == origin && lines[1] == parts[0], "note_origin", "The checkpoint is of the log %+q.", lines[1])
	var own [][]byte
	for _, line := range noteLine.FindAllStringSubmatch(rest, -1) {
		if signed := unbase64(line[2], "note_malformed"); line[1] == parts[0] && bytes.HasPrefix(signed, id) {
			own = append(own, signed[4:])
		}
	}
	require(len(own) == 1 && ed25519.Verify(key[1:], []byte(text+"\n"), own[0]), "note_signature", "Its signature is invalid.")
	return lines
}

func checkAgreement(event, intent, receipt object) {
	require(event.text("event_type") == `"ActionCall"`, "event_malformed", "The event is not that of a call.")
	same(receipt, event, "receipt and event", "receipt_id grant_id")
	if intent != nil {
		get[string](intent, "dispatched_at", "intent_malformed")
		same(event, intent, "event and intent", "intent_id grant_id trace_id action_id principal")
	}
	require(intent != nil || event.text("intent_id") == "", "leaves", "The bundle lacks the intent of the event.")
	version, approval := receipt.text("receipt_version"), object{}
	require(version == "" || version == "2", "receipt_malformed", "The version of the receipt is unknown.")
	if version == "2" {
		require(receipt["approval"] != nil, "receipt_malformed", "The receipt has no approval.")
		if receipt.text("approval") != "" {
			approval = parse(receipt["approval"], "receipt_malformed", true)
		}
		same(receipt, event, "receipt and event", "principal action_id action_version request_hash trace_id "+
			"policy_rule policy_version provider_module_digest standing_id")
		same(approval, event, "approval and event",
			"approval_id approved_by operator_jkt=operator_sender_binding operator_proof_jti")
	}
	if version == "2" && intent != nil {
		same(approval, intent, "approval and intent", "approval_id")
		same(receipt, intent, "receipt and intent", "plan_hash provider_module_digest=provider_module")
	}
}

func main() {
	const bad, usage = "bundle_malformed", "usage: verify BUNDLE.json --origin-key VKEY [--receipt-keys JWKS.json] [--operator-jkt JKT]..."
	given, operators := taken(os.Args, "--operator-jkt")
	isCheckingKeys := len(given) == 6 && given[4] == "--receipt-keys"
	require((len(given) == 4 || isCheckingKeys) && given[2] == "--origin-key", "unreadable", usage)
	bundle := parse(contents(given[1]), "unreadable", false)
	require(bundle.text("bundle_version") == "1", bad, "The bundle is not of version 1.")
	origin := get[string](bundle, "origin", bad)
	note := checkpoint(get[string](bundle, "checkpoint", bad), origin, given[3])
	size, root := get[int64](object{"size": json.RawMessage(note[2])}, "size", bad), unbase64(note[3], "note_malformed")
	leaves, indexes := map[string]object{}, map[string]int64{"intent": -1}
	for _, leaf := range get[[]object](bundle, "leaves", bad) {
		kind, index := get[string](leaf, "kind", bad), get[int64](leaf, "index", bad)
		require((kind == "event" || kind == "intent") && leaves[kind] == nil, "leaves", "A leaf is not the one event or intent.")
		leaves[kind], indexes[kind] = proven(leaf, size, root), index
	}
	require(leaves["event"] != nil, "leaves", "The bundle has no event.")
	event, stored := leaves["event"], unbase64(get[string](bundle, "receipt", bad), bad)
	checkTexts(event, "event_malformed", "receipt_hash")
	receipt, bound := parse(stored, "receipt_malformed", true), event.text("receipt_hash")
	isOld := receipt.text("receipt_version") == "" // perhaps from before there was a tree
	require(isOld || indexes["intent"] < indexes["event"], "leaf_order", "The intent does not come before the event.")
	require(bound == hashText(stored) || isOld && bound == "" && isCheckingKeys, "receipt_hash", "The event has another hash.")
	checkAgreement(event, leaves["intent"], receipt)
	checkForms(event, receipt)
	approved := checkApproval(receipt, origin, operators)
	kept := checkKept(bundle, event, size, root)
	if isCheckingKeys {
		checkReceiptSignature(receipt, parse(contents(given[5]), "unreadable", false))
	}
	fmt.Printf("proven\nThe log %+q signed its checkpoint of size %d at %s. Entry %d of it is the event %s of %s.\n",
		origin, size, note[4], indexes["event"], event.shown("event_id"), event.shown("timestamp"))
	fmt.Printf("In it %s called %s. Result: %s. %s\n%s",
		event.shown("principal"), event.shown("action_id"), receipt.shown("normalized_result"), approved, kept)
}
