// The signatures that a receipt carries: its own, and the one of the operator who approved.
package main

import (
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"strings"
)

func checkReceiptSignature(receipt, jwks object) {
	envelope := receipt.canonicalWithout(" result_hash receipt_signature signing_key_id signature_status ")
	id, signed := receipt.text("signing_key_id")+`"OKP""Ed25519"`, get[string](receipt, "receipt_signature", "receipt_malformed")
	var keys [][]byte
	var signature []byte
	for _, jwk := range get[[]object](jwks, "keys", "receipt_key") {
		if jwk.text("kid")+jwk.text("kty")+jwk.text("crv") == id {
			if key, err := base64.RawURLEncoding.DecodeString(get[string](jwk, "x", "receipt_key")); err == nil && len(key) == 32 {
				keys = append(keys, key)
			}
		}
	}
	require(len(keys) == 1, "receipt_key", "The receipt keys do not have one Ed25519 key %s.", receipt.shown("signing_key_id"))
	require(receipt.text("result_hash") == hashText(envelope), "result_hash", "The result_hash is another one.")
	fmt.Sscanf(signed, "%x", &signature)
	holds := fmt.Sprintf("%x", signature) == signed && ed25519.Verify(keys[0], envelope, signature)
	require(holds, "receipt_signature", "The signature of the receipt is invalid.")
}

// unbase64url reads base64url without padding, as a JWS (RFC 7515) has it.
func unbase64url(text, reason string) []byte {
	data, err := base64.RawURLEncoding.DecodeString(text)
	require(err == nil && base64.RawURLEncoding.EncodeToString(data) == text, reason, "The signature of the approval is not base64url.")
	return data
}

// checkApproval checks the operators' own signatures of an approval; returns what they prove. Each of the thumbprints that
// were given is one of a trusted operator; without any the key is compared with the one that the receipt names.
func checkApproval(receipt object, origin string, operators []string) string {
	const bad = "approval_signature"
	if receipt.text("standing_id") != "" || receipt.text("standing_signature") != "" {
		require(receipt.text("approval") == "", bad, "The receipt names an approval beside the standing one.")
		return checkStanding(receipt, origin, operators)
	}
	approval := object{}
	if receipt.text("approval") != "" {
		approval = get[object](receipt, "approval", bad)
	}
	several := checkQuorum(receipt, approval, operators)
	if approval.text("signature") == "" {
		require(len(operators) == 0, bad, "The receipt has no operator's signature.")
		return "It carries no signature of an operator."
	}
	jkt, _ := checkSigned(receipt, approval, approval.text("approval_id"), operators)
	whose := "which was not compared with one that you know"
	if len(operators) > 0 {
		whose = "which you trust"
	}
	return fmt.Sprintf("%s approved it%s, signed by the key %s, %s.", approval.shown("approved_by"), several, jkt, whose)
}

// checkSigned checks the signature of one approval, which tells by whom it is; returns the thumbprint of its key and the
// claims.
func checkSigned(receipt, approval object, approvalID string, operators []string) (string, object) {
	const bad = "approval_signature"
	jkt, claims := openSigned(get[string](approval, "signature", bad), "approval+jws", operators)
	require(get[string](approval, "operator_jkt", bad) == jkt, bad, "Another key than the operator's has signed it.")
	told := object{"approval_id": json.RawMessage(approvalID), "action_id": receipt["action_id"], "plan_hash": receipt["plan_hash"]}
	isSame := get[string](claims, "decision", bad) == "approve"
	for name := range told {
		isSame = isSame && get[string](claims, name, bad) == get[string](told, name, bad)
	}
	if claims["operator"] != nil {
		isSame = isSame && get[string](claims, "operator", bad) == get[string](approval, "approved_by", bad)
	}
	require(isSame, bad, "Another decision was signed than the one that the receipt tells.")
	return jkt, claims
}

// openSigned checks that a JWS of this type was signed by the key in its header, one of these operators if there are any;
// returns the thumbprint of that key and the claims.
func openSigned(signed, typ string, operators []string) (string, object) {
	const bad = "approval_signature"
	parts := strings.Split(signed, ".")
	require(len(parts) == 3, bad, "The signature of the approval is no JWS.")
	header, claims := parse(unbase64url(parts[0], bad), bad, false), parse(unbase64url(parts[1], bad), bad, false)
	ofType := get[string](header, "typ", bad) == typ && get[string](header, "alg", bad) == "ES256"
	require(ofType, bad, "The signature of the approval is of another type.")
	jwk, pair := get[object](header, "jwk", bad), unbase64url(parts[2], bad)
	require(jwk.text("kty")+jwk.text("crv") == `"EC""P-256"`, bad, "The signature of the approval is by another kind of key.")
	x, y := unbase64url(get[string](jwk, "x", bad), bad), unbase64url(get[string](jwk, "y", bad), bad)
	require(len(x) == 32 && len(y) == 32 && len(pair) == 64, bad, "The signature of the approval has another length.")
	key := ecdsa.PublicKey{Curve: elliptic.P256(), X: new(big.Int).SetBytes(x), Y: new(big.Int).SetBytes(y)}
	_, err := key.ECDH()
	r, s := new(big.Int).SetBytes(pair[:32]), new(big.Int).SetBytes(pair[32:])
	holds := err == nil && ecdsa.Verify(&key, hash([]byte(parts[0]+"."+parts[1])), r, s)
	require(holds, bad, "The signature of the approval is invalid.")
	members := fmt.Sprintf(`{"crv":"P-256","kty":"EC","x":"%s","y":"%s"}`, base64.RawURLEncoding.EncodeToString(x), base64.RawURLEncoding.EncodeToString(y))
	jkt := base64.RawURLEncoding.EncodeToString(hash([]byte(members)))
	isTrusted := len(operators) == 0
	for _, one := range operators {
		isTrusted = isTrusted || one == jkt
	}
	require(isTrusted, bad, "Another key than the operator's has signed it.")
	return jkt, claims
}

// taken takes the values of an option out of the arguments.
func taken(arguments []string, option string) (rest, values []string) {
	for at := 0; at < len(arguments); at++ {
		if arguments[at] == option && at+1 < len(arguments) {
			values, at = append(values, arguments[at+1]), at+1
		} else {
			rest = append(rest, arguments[at])
		}
	}
	return rest, values
}
