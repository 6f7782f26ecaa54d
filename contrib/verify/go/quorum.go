// The approvals of a call that needed several: by different operators, each signed as a single one is.
package main

import (
	"fmt"
	"math/bits"
	"strings"
)

const mostGroups = 8

// loopback makes one audience of the names that the gateway's own address has in dev mode.
var loopback = strings.NewReplacer("//127.0.0.1:", "//localhost:", "//[::1]:", "//localhost:")

// checkQuorum checks that a receipt's several approvals meet its quorum; returns how many they are, for a sentence.
func checkQuorum(receipt, approval object, operators []string) string {
	const bad, form = "approval_signature", "receipt_malformed"
	if approval.text("quorum") == "" && approval.text("approvals") == "" {
		return ""
	}
	quorum, given := get[object](approval, "quorum", form), get[[]object](approval, "approvals", form)
	count, needed := get[int64](quorum, "count", form), get[object](quorum, "groups", form)
	names, seen, members, isSigned := []string{}, map[string]bool{}, []uint{}, false
	for name := range needed {
		require(get[int64](needed, name, form) >= 0, form, "The quorum asks for a negative number.")
		names = append(names, name)
	}
	require(count >= 0, form, "The quorum asks for a negative number.")
	for _, one := range given {
		by, key := "by "+get[string](one, "approved_by", form), "with "+get[string](one, "operator_jkt", form)
		require(!seen[by] && !seen[key], bad, "One operator stands for two approvals.")
		seen[by], seen[key], isSigned = true, true, isSigned || one.text("signature") != ""
		members = append(members, groupsOf(one, names, form))
	}
	require(len(names) <= mostGroups, bad, "The quorum has more than %d groups.", mostGroups)
	require(len(given) > 0, bad, "The quorum has no approvals.")
	for _, name := range []string{"approved_by", "operator_jkt", "signature"} {
		last := given[len(given)-1].text(name)
		require(last == approval.text(name), bad, "The last of the approvals has another %s than the receipt's.", name)
	}
	require(int64(len(given)) >= count && isMet(needed, names, members), bad, "The approvals do not meet the quorum.")
	audience := ""
	for at, one := range given {
		if isSigned || len(operators) > 0 {
			require(one.text("signature") != "", bad, "One of the approvals is not signed.")
			_, claims := checkSigned(receipt, one, approval.text("approval_id"), operators)
			aud := loopback.Replace(get[string](claims, "aud", bad))
			require(at == 0 || aud == audience, bad, "The approvals are signed for different gateways.")
			audience = aud
		}
	}
	return fmt.Sprintf(" as the last of %d operators", len(given))
}

// groupsOf is the set of those of the quorum's groups that the operator of an approval is in.
func groupsOf(approval object, names []string, reason string) (set uint) {
	if approval.text("groups") == "" {
		return 0
	}
	for _, group := range texts(approval, "groups", reason) {
		for at, name := range names {
			if name == group {
				set |= 1 << at
			}
		}
	}
	return set
}

// isMet tells whether each approval can count for one group: every choice of groups must have as many approvals as they
// ask for together.
func isMet(needed object, names []string, members []uint) bool {
	for chosen := uint(1); chosen < 1<<len(names); chosen++ {
		wanted, found := int64(0), int64(0)
		for at, name := range names {
			if chosen&(1<<at) != 0 {
				wanted += get[int64](needed, name, "receipt_malformed")
			}
		}
		for _, set := range members {
			found += int64(bits.OnesCount(min(set&chosen, 1)))
		}
		if found < wanted {
			return false
		}
	}
	return true
}
