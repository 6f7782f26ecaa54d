// The kept values of a call: what its event commits to.
package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"regexp"
	"sort"
	"strings"
)

var commitmentForm = regexp.MustCompile(`^sha256:[0-9a-f]{64}$`)

// checkKept checks that each commitment of an event has its value, or an event that erased it; returns lines that show them.
func checkKept(bundle, event object, size int64, root []byte) (shown string) {
	const bad = "bundle_malformed"
	committed, given, pointers := commitmentsOf(event), []object{}, []string{}
	if bundle.text("kept") != "" {
		given = get[[]object](bundle, "kept", bad)
	}
	salts := make([][]byte, len(given))
	for at, one := range given {
		first, text := (string(one["value"]) + "null")[:1], get[string](one, "salt", bad)
		salts[at], _ = base64.RawURLEncoding.DecodeString(text)
		isSalt := len(salts[at]) == 16 && base64.RawURLEncoding.EncodeToString(salts[at]) == text
		require(isSalt && !strings.Contains("n[{", first), bad, "A kept value has another type, or no salt of 16 bytes.")
		get[string](one, "pointer", bad)
	}
	erased, values := erasedBy(bundle, size, root), map[string]string{}
	for at, one := range given {
		pointer := get[string](one, "pointer", bad)
		data := canonicalScalar(one["value"])
		holds := values[pointer] == "" && data != "" && hashText([]byte(string(salts[at])+data)) == `"`+committed[pointer]+`"`
		require(holds, "kept_value", "The event does not commit to the kept value %+q.", pointer)
		values[pointer] = one.shown("value")
	}
	for pointer := range committed {
		pointers = append(pointers, pointer)
	}
	sort.Strings(pointers)
	for _, pointer := range pointers {
		value := values[pointer]
		require(value != "" || erased[committed[pointer]], "missing", "The kept value %+q is missing, and no event erased it.", pointer)
		if value == "" {
			value = "erased"
		}
		shown += fmt.Sprintf("It kept %+q: %s\n", pointer, value)
	}
	return shown
}

func commitmentsOf(event object) map[string]string {
	const bad = "event_malformed"
	found := map[string]string{}
	if event.text("kept") != "" {
		members := get[object](event, "kept", bad)
		for pointer := range members {
			found[pointer] = get[string](members, pointer, bad)
			require(commitmentForm.MatchString(found[pointer]), bad, "A commitment of the event has another form.")
		}
	}
	return found
}

// erasedBy has the commitments whose values were erased by the events in the bundle. One may come before the event of the
// call: values of a call whose outcome is unknown are erased, too.
func erasedBy(bundle object, size int64, root []byte) map[string]bool {
	const bad = "event_malformed"
	erased := map[string]bool{}
	if bundle.text("erasures") == "" {
		return erased
	}
	for _, leaf := range get[[]object](bundle, "erasures", "bundle_malformed") {
		kind := get[string](leaf, "kind", "bundle_malformed")
		require(kind == "event", "leaves", "An erasure in the bundle is no event.")
		event := proven(leaf, size, root)
		require(event.text("event_type") == `"EvidenceErased"`, bad, "An event did not erase kept values.")
		for _, one := range texts(get[object](event, "change", bad), "commitments", bad) {
			require(commitmentForm.MatchString(one), bad, "A commitment that was erased has another form.")
			erased[one] = true
		}
	}
	return erased
}

// canonicalScalar is the form of a text, number or flag that RFC 8785 hashes; empty for what has none.
func canonicalScalar(value json.RawMessage) string {
	var found any
	if json.Unmarshal(value, &found) != nil {
		return ""
	}
	if text, isText := found.(string); isText {
		return canonicalText(text)
	}
	if found == 0.0 { // -0 too
		return "0"
	}
	written, _ := json.Marshal(found) // a number as ECMAScript writes it
	return string(written)
}

func canonicalText(text string) string {
	var written strings.Builder
	short := map[rune]string{'"': `\"`, '\\': `\\`, '\b': `\b`, '\f': `\f`, '\n': `\n`, '\r': `\r`, '\t': `\t`}
	for _, char := range text {
		if escape, isShort := short[char]; isShort {
			written.WriteString(escape)
		} else if char < 0x20 {
			fmt.Fprintf(&written, `\u%04x`, char)
		} else {
			written.WriteRune(char)
		}
	}
	return `"` + written.String() + `"`
}
