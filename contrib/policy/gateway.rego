# The default policy: the first rule that applies decides. docs/policy.md describes input, data and decision.
#
# Each rule of the table there is one condition here, `applies_NAME`: `gateway policy explain` asks for every one of them.
# Written for speed as much as for reading: the evaluator keeps no results of rules, so each is asked for once, and
# reasons are only put together for a denial. Nothing here reads budgets_before or request_hash, which differ from call to
# call: a decision is remembered for every question with the same values in the fields that the rules read.
package gateway

import rego.v1

# Who may do what: the principal's own entry, and the entry "*" for principals without one or with inherits_wildcard.
wildcard if not data.acl[input.principal]

wildcard if data.acl[input.principal].inherits_wildcard == true

wildcard_action if {
	input.action_id in data.acl["*"].actions
	wildcard
}

wildcard_sink(sink) if {
	sink in data.acl["*"].sinks
	wildcard
}

# SECURITY: no `not` stands before a look into data: where the data is not there OPA gives the whole rule no value, so that
# a denial would not apply (OPA's issue 8387). A condition of its own is asked first, and that one is negated.
own_action if input.action_id in data.acl[input.principal].actions

own_sink(sink) if sink in data.acl[input.principal].sinks

applies_trust if not input.action_trust_verdict == "digest_ok"

applies_denied_action if data.denied_actions[input.action_id]

applies_acl if {
	not own_action
	not wildcard_action
}

applies_scope if {
	some scope in input.required_scopes
	not scope in input.scopes
}

applies_sinks if {
	some sink in input.requested_sinks
	not own_sink(sink)
	not wildcard_sink(sink)
}

# The allowlist lifts the hold and nothing else: every denial above has been passed by then.
applies_allowlist if data.allowlist[input.action_id][input.principal] == true

applies_hold_high_risk if not input.action_risk_level in ["low", "medium"]

applies_hold_unresolved_domain if input.unresolved_domains != []

applies_hold_unresolved_path if input.unresolved_paths != []

denial := "trust" if {
	applies_trust
} else := "denied_action" if {
	applies_denied_action
} else := "acl" if {
	applies_acl
} else := "scope" if {
	applies_scope
} else := "sinks" if {
	applies_sinks
}

hold := "hold_high_risk" if {
	applies_hold_high_risk
} else := "hold_unresolved_domain" if {
	applies_hold_unresolved_domain
} else := "hold_unresolved_path" if {
	applies_hold_unresolved_path
}

# SECURITY: who decides is settled before the document is written, by conditions alone, and the document has no second
# branch. A part of it that has no value makes it no decision (503), never the decision of the branch behind.
outcome := {"allow": false, "hold": false, "rule": rule} if {
	rule := denial
} else := {"allow": true, "hold": false, "rule": "allowlist"} if {
	applies_allowlist
} else := {"allow": true, "hold": true, "rule": rule} if {
	rule := hold
} else := {"allow": true, "hold": false, "rule": "allow"}

decision := {
	"allow": settled.allow,
	"requires_approval": settled.hold,
	"deny_reason": said(settled),
	"rule": settled.rule,
	"allowed_sinks": sinks_for(settled),
	"policy_version": data.policy_version,
} if {
	settled := outcome
}

sinks_for(settled) := input.requested_sinks if {
	settled.allow
} else := []

# What is denied for a rule without a reason is denied all the same.
said(settled) := "" if {
	settled.allow
} else := text if {
	text := reason(settled.rule)
} else := concat("", ["denied by rule ", settled.rule])

# Reasons are read by agents and by those who look after them: what is missing, and what would be allowed.
reason("trust") := concat("", ["the provider module of ", input.action_id, " is not trusted: ", untrusted])

untrusted := "its bytes are not those of the digest in the manifest" if {
	input.action_trust_verdict == "mismatch"
} else := "its digest is not entered in trusted_modules.yaml" if {
	input.action_trust_verdict == "not_registered"
} else := concat("", ["the verdict on it is ", input.action_trust_verdict])

reason("denied_action") := data.denied_actions[input.action_id]

reason("acl") := concat("", [input.principal, " may not call ", input.action_id, "; it may call ", listed(actions)]) if {
	actions := {action |
		some entry in granting
		some action in entry.actions
	}
}

reason("scope") := concat("", [input.action_id, " needs the scopes ", listed(required), "; the lease has ", listed(held)]) if {
	required := {scope | some scope in input.required_scopes}
	held := {scope | some scope in input.scopes}
}

reason("sinks") := concat("", [input.action_id, " needs the sinks ", listed(missing), ", which ", input.principal, " may not use; it may use ", listed(sinks)]) if {
	missing := {sink |
		some sink in input.requested_sinks
		not own_sink(sink)
		not wildcard_sink(sink)
	}
	sinks := {sink |
		some entry in granting
		some sink in entry.sinks
	}
}

# The entries that count for this principal.
granting contains data.acl[input.principal]

granting contains data.acl["*"] if wildcard

# At most ten names: the reason is cut at 500 characters.
listed(names) := "nothing" if {
	count(names) == 0
} else := concat(", ", ordered(names)) if {
	count(names) <= 10
} else := concat("", [concat(", ", array.slice(ordered(names), 0, 10)), " and more"])

ordered(names) := sort([name | some name in names])
