# The default policy: the first rule that applies decides. docs/policy.md describes input, data and decision.
#
# Written for speed as much as for reading: the evaluator keeps no results of rules, so each is asked for once, and
# reasons are only put together for a denial.
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

denial := "trust" if {
	not input.action_trust_verdict == "digest_ok"
} else := "denied_action" if {
	data.denied_actions[input.action_id]
} else := "acl" if {
	not input.action_id in data.acl[input.principal].actions
	not wildcard_action
} else := "scope" if {
	some scope in input.required_scopes
	not scope in input.scopes
} else := "budget" if {
	input.budgets_before.calls_remaining != null
	input.budgets_before.calls_remaining < 1
} else := "sinks" if {
	some sink in input.requested_sinks
	not sink in data.acl[input.principal].sinks
	not wildcard_sink(sink)
}

# The allowlist lifts the hold and nothing else: every denial above has been passed by then.
exception if data.allowlist[input.action_id][input.principal] == true

hold := "hold_high_risk" if {
	not input.action_risk_level in ["low", "medium"]
} else := "hold_unresolved_domain" if {
	input.unresolved_domains != []
} else := "hold_unresolved_path" if {
	input.unresolved_paths != []
}

decision := {
	"allow": false,
	"requires_approval": false,
	"deny_reason": reason(rule),
	"rule": rule,
	"allowed_sinks": [],
	"policy_version": data.policy_version,
} if {
	rule := denial
} else := {
	"allow": true,
	"requires_approval": false,
	"deny_reason": "",
	"rule": "allowlist",
	"allowed_sinks": input.requested_sinks,
	"policy_version": data.policy_version,
} if {
	exception
} else := {
	"allow": true,
	"requires_approval": true,
	"deny_reason": "",
	"rule": rule,
	"allowed_sinks": input.requested_sinks,
	"policy_version": data.policy_version,
} if {
	rule := hold
} else := {
	"allow": true,
	"requires_approval": false,
	"deny_reason": "",
	"rule": "allow",
	"allowed_sinks": input.requested_sinks,
	"policy_version": data.policy_version,
}

reason("trust") := concat("", ["the provider module of ", input.action_id, " is not trusted (", input.action_trust_verdict, ")"])

reason("denied_action") := data.denied_actions[input.action_id]

reason("acl") := concat("", [input.principal, " may not call ", input.action_id])

reason("scope") := concat("", ["the lease lacks the scope ", concat(", ", missing)]) if {
	missing := [scope | some scope in input.required_scopes; not scope in input.scopes]
}

reason("budget") := "the session has no calls left"

reason("sinks") := concat("", [input.principal, " may not use ", concat(", ", missing), ", which ", input.action_id, " needs"]) if {
	missing := [sink |
		some sink in input.requested_sinks
		not sink in data.acl[input.principal].sinks
		not wildcard_sink(sink)
	]
}
