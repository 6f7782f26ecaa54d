// The types of members that are shown, and that a signature is compared with.
package main

import "strings"

// checkTexts requires that each of these members is a text where it is there.
func checkTexts(o object, reason, names string) {
	for _, name := range strings.Fields(names) {
		if o.text(name) != "" {
			get[string](o, name, reason)
		}
	}
}

// checkForms checks the members of an event and its receipt, which agree.
func checkForms(event, receipt object) {
	const bad = "receipt_malformed"
	if approval := (object{}); receipt.text("approval") != "" {
		approval = get[object](receipt, "approval", bad)
		if checkTexts(approval, bad, "signature"); approval.text("signature") != "" {
			checkTexts(approval, bad, "approval_id approved_by operator_jkt")
			checkTexts(receipt, bad, "action_id plan_hash")
		}
	}
	checkTexts(receipt, bad, "standing_id standing_signature")
	if receipt.text("standing_id") != "" {
		checkTexts(receipt, bad, "action_id principal")
	}
	checkTexts(event, "event_malformed", "principal action_id action_version decision policy_rule policy_version "+
		"approval_id approved_by timestamp trace_id event_id intent_id")
	checkTexts(receipt, bad, "failure_class finished_at receipt_id")
	checkTexts(parse(receipt["normalized_result"], bad, true), bad, "kind")
	checkTexts(parse(receipt["verification_outcome"], bad, true), bad, "status")
}
