# Tests of the default policy: `gateway policy test contrib/policy`. No gateway loads this file.
#
# Each test asks about the ordinary question (docs/policy.md, "Tests of a policy": "agent" calls "action"), changed by
# `with`. A value behind `with` is bound first: this evaluator forgets a `with` whose value names a rule.
package gateway_test

import rego.v1

grants := {
	"agent": {"actions": ["action", "export"], "sinks": ["http_read", "http_write"]},
	"heir": {"actions": ["export"], "sinks": ["http_write"], "inherits_wildcard": true},
	"loner": {"actions": ["export"], "sinks": ["http_write"], "inherits_wildcard": false},
	"*": {"actions": ["action"], "sinks": ["http_read"]},
}

is_denied(decision, rule, reason) if {
	decision.allow == false
	decision.requires_approval == false
	decision.allowed_sinks == []
	decision.rule == rule
	decision.deny_reason == reason
	decision.policy_version == data.policy_version
}

is_held(decision, rule) if {
	decision.allow == true
	decision.requires_approval == true
	decision.deny_reason == ""
	decision.rule == rule
}

is_allowed(decision, rule) if {
	decision.allow == true
	decision.requires_approval == false
	decision.deny_reason == ""
	decision.rule == rule
}

# 1 trust

test_a_module_with_other_bytes_is_denied if {
	acl := grants
	found := data.gateway.decision with data.acl as acl with input.action_trust_verdict as "mismatch"
	is_denied(found, "trust", "the provider module of action is not trusted: its bytes are not those of the digest in the manifest")
}

test_a_module_that_nobody_entered_is_denied if {
	acl := grants
	found := data.gateway.decision with data.acl as acl with input.action_trust_verdict as "not_registered"
	is_denied(found, "trust", "the provider module of action is not trusted: its digest is not entered in trusted_modules.yaml")
}

test_a_verdict_that_nobody_knows_is_denied if {
	acl := grants
	found := data.gateway.decision with data.acl as acl with input.action_trust_verdict as "fine"
	is_denied(found, "trust", "the provider module of action is not trusted: the verdict on it is fine")
}

# denied_action

test_an_action_that_nobody_may_call_is_denied_with_the_reason_of_the_data if {
	acl := grants
	found := data.gateway.decision with data.acl as acl with data.denied_actions as {"action": "closed for today"}
	is_denied(found, "denied_action", "closed for today")
}

# 2 acl

test_an_action_that_the_entry_does_not_name_is_denied_with_those_that_it_names if {
	acl := grants
	found := data.gateway.decision with data.acl as acl with input.action_id as "pay"
	is_denied(found, "acl", "agent may not call pay; it may call action, export")
}

test_an_entry_stands_alone_unless_it_inherits if {
	acl := grants
	found := data.gateway.decision with data.acl as acl with input.principal as "loner"
	is_denied(found, "acl", "loner may not call action; it may call export")
}

test_an_entry_may_inherit_from_everybody if {
	acl := grants
	found := data.gateway.decision with data.acl as acl with input.principal as "heir"
	is_allowed(found, "allow")
}

test_everybody_covers_who_has_no_entry if {
	acl := grants
	found := data.gateway.decision with data.acl as acl with input.principal as "stranger"
	is_allowed(found, "allow")
	denied := data.gateway.decision with data.acl as acl with input.principal as "stranger" with input.action_id as "export"
	is_denied(denied, "acl", "stranger may not call export; it may call action")
}

test_without_any_entry_nobody_may_call_anything if {
	found := data.gateway.decision with data.acl as {}
	is_denied(found, "acl", "agent may not call action; it may call nothing")
}

test_a_long_list_of_actions_is_cut if {
	names := [concat("", ["a", format_int(number, 10)]) | some number in numbers.range(10, 30)]
	found := data.gateway.decision with data.acl.agent.actions as names
	is_denied(found, "acl", "agent may not call action; it may call a10, a11, a12, a13, a14, a15, a16, a17, a18, a19 and more")
}

# 3 scope

test_a_scope_that_the_lease_lacks_is_denied if {
	acl := grants
	found := data.gateway.decision with data.acl as acl with input.required_scopes as ["tools:call", "pay:out"]
	is_denied(found, "scope", "action needs the scopes pay:out, tools:call; the lease has tools:call")
}

test_a_lease_without_scopes_is_denied if {
	acl := grants
	found := data.gateway.decision with data.acl as acl with input.scopes as []
	is_denied(found, "scope", "action needs the scopes tools:call; the lease has nothing")
}

# 4 sinks

test_a_sink_that_is_not_granted_is_denied_with_those_that_are if {
	acl := grants
	found := data.gateway.decision with data.acl as acl with input.requested_sinks as ["http_read", "fs_write"]
	is_denied(found, "sinks", "action needs the sinks fs_write, which agent may not use; it may use http_read, http_write")
}

test_sinks_of_everybody_count_for_who_inherits_them if {
	acl := grants
	found := data.gateway.decision with data.acl as acl with input.principal as "heir" with input.requested_sinks as ["http_read", "http_write"]
	is_allowed(found, "allow")
	found.allowed_sinks == ["http_read", "http_write"]
}

# 4b allowlist

test_the_allowlist_lifts_every_hold if {
	acl := grants
	every level in ["low", "high", "critical"] {
		found := data.gateway.decision with data.acl as acl with data.allowlist as {"action": {"agent": true}} with input.action_risk_level as level with input.unresolved_domains as ["new.example"] with input.unresolved_paths as ["new/file"]
		is_allowed(found, "allowlist")
	}
}

test_the_allowlist_lifts_no_denial if {
	acl := grants
	found := data.gateway.decision with data.acl as acl with data.allowlist as {"action": {"agent": true}} with input.scopes as []
	found.rule == "scope"
	found.allow == false
}

test_the_allowlist_is_for_its_pair_alone if {
	acl := grants
	found := data.gateway.decision with data.acl as acl with data.allowlist as {"action": {"heir": true, "agent": false}} with input.action_risk_level as "high"
	is_held(found, "hold_high_risk")
}

# 5 to 7 holds

test_high_and_critical_risk_waits_for_a_person if {
	acl := grants
	every level in ["high", "critical", "unheard of"] {
		found := data.gateway.decision with data.acl as acl with input.action_risk_level as level
		is_held(found, "hold_high_risk")
	}
}

test_low_and_medium_risk_does_not_wait if {
	acl := grants
	every level in ["low", "medium"] {
		found := data.gateway.decision with data.acl as acl with input.action_risk_level as level
		is_allowed(found, "allow")
	}
}

test_a_domain_that_nobody_allowed_waits_for_a_person if {
	acl := grants
	found := data.gateway.decision with data.acl as acl with input.unresolved_domains as ["new.example"]
	is_held(found, "hold_unresolved_domain")
}

test_a_path_that_nobody_allowed_waits_for_a_person if {
	acl := grants
	found := data.gateway.decision with data.acl as acl with input.unresolved_paths as ["new/file"]
	is_held(found, "hold_unresolved_path")
}

# 8 allow, and the order

test_calls_that_are_left_are_not_the_business_of_these_rules if {
	acl := grants
	every left in [0, 1, null] {
		found := data.gateway.decision with data.acl as acl with input.budgets_before.calls_remaining as left
		is_allowed(found, "allow")
	}
}

test_what_nothing_denies_or_holds_is_allowed_with_its_sinks if {
	acl := grants
	found := data.gateway.decision with data.acl as acl with input.requested_sinks as ["http_read"]
	is_allowed(found, "allow")
	found.allowed_sinks == ["http_read"]
}

test_of_several_rules_the_first_decides if {
	acl := grants
	all_wrong := data.gateway.decision with data.acl as acl with input.action_trust_verdict as "mismatch" with input.scopes as [] with input.requested_sinks as ["fs_write"] with input.action_risk_level as "high"
	all_wrong.rule == "trust"
	from_scope := data.gateway.decision with data.acl as acl with input.scopes as [] with input.requested_sinks as ["fs_write"]
	from_scope.rule == "scope"
	from_sinks := data.gateway.decision with data.acl as acl with input.requested_sinks as ["fs_write"] with input.action_risk_level as "high"
	from_sinks.rule == "sinks"
}
