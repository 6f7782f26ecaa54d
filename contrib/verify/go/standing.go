// The standing approval by which a call ran: an operator signed it for calls to come.
package main

import (
	"fmt"
	"time"
)

// timeForm is how a gateway writes times.
const timeForm = "2006-01-02T15:04:05.000Z"

// checkStanding checks the signed text in a receipt; returns what it proves.
func checkStanding(receipt object, origin string, operators []string) string {
	const bad = "approval_signature"
	jkt, terms := openSigned(get[string](receipt, "standing_signature", bad), "standing+jws", operators)
	audience := texts(terms, "aud", bad)
	require(len(audience) == 2 && audience[1] == origin, bad, "The standing approval was signed for another ledger.")
	isSame := true
	for _, name := range []string{"standing_id", "action_id", "principal"} {
		isSame = isSame && get[string](terms, name, bad) == get[string](receipt, name, bad)
	}
	require(isSame, bad, "The standing approval was signed for other calls than the one that the receipt tells.")
	begun := get[string](receipt, "started_at", bad)
	started, err := time.Parse(timeForm, begun)
	inTime := err == nil && started.Format(timeForm) == begun && started.Before(time.Unix(get[int64](terms, "until", bad), 0))
	require(inTime, bad, "The time of the standing approval was over when the call began.")
	whose := "which was not compared with one that you know"
	if len(operators) > 0 {
		whose = "which you trust"
	}
	return fmt.Sprintf("It ran by the standing approval %s, signed by the key %s, %s.", receipt.shown("standing_id"), jkt, whose)
}
