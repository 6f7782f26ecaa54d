// Command jwt-svids mints a JWT-SVID and its trust domain's bundle, by the official library of SPIFFE.
//
// Usage: jwt-svids SPIFFE-ID AUDIENCE. Prints {"token": …, "bundle": …}; fails unless the library takes the token for
// this bundle.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"os"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/go-jose/go-jose/v4/jwt"
	"github.com/spiffe/go-spiffe/v2/bundle/spiffebundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"
	"github.com/spiffe/go-spiffe/v2/svid/jwtsvid"
)

const keyID = "svid-key"

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(arguments []string) error {
	if len(arguments) != 2 {
		return fmt.Errorf("usage: jwt-svids SPIFFE-ID AUDIENCE")
	}
	id, err := spiffeid.FromString(arguments[0])
	if err != nil {
		return err
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return err
	}
	token, err := minted(id, arguments[1], key)
	if err != nil {
		return err
	}
	bundle := spiffebundle.New(id.TrustDomain())
	if err := bundle.AddJWTAuthority(keyID, key.Public()); err != nil {
		return err
	}
	if _, err := jwtsvid.ParseAndValidate(token, bundle, []string{arguments[1]}); err != nil {
		return err
	}
	text, err := bundle.Marshal()
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(map[string]any{"token": token, "bundle": json.RawMessage(text)})
}

func minted(id spiffeid.ID, audience string, key *ecdsa.PrivateKey) (string, error) {
	options := (&jose.SignerOptions{}).WithType("JWT").WithHeader("kid", keyID)
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.ES256, Key: key}, options)
	if err != nil {
		return "", err
	}
	now := time.Now()
	claims := jwt.Claims{
		Issuer: "https://" + id.TrustDomain().Name(), Subject: id.String(), Audience: jwt.Audience{audience},
		IssuedAt: jwt.NewNumericDate(now), Expiry: jwt.NewNumericDate(now.Add(5 * time.Minute)),
	}
	return jwt.Signed(signer).Claims(claims).Serialize()
}
