// Files and their JSON: whole, without a name twice, and with members of the right type.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strings"
	"unicode/utf8"
)

// contents are those of a file; one that can't be read is named, in characters that no terminal acts on.
func contents(path string) []byte {
	data, err := os.ReadFile(path)
	require(err == nil, "unreadable", "%+q", fmt.Sprint(err))
	return data
}

// mostDeep is how deep values may be nested.
const mostDeep = 256

// countTokens tells how many tokens there are, and how deep they are nested.
func countTokens(data []byte) (count, deepest int) {
	depth := 0
	for decoder := json.NewDecoder(bytes.NewReader(data)); ; count++ {
		token, err := decoder.Token()
		if err != nil {
			return count, deepest
		}
		if delim, is := token.(json.Delim); is {
			depth += map[json.Delim]int{'[': 1, '{': 1, ']': -1, '}': -1}[delim]
			deepest = max(deepest, depth)
		}
	}
}

// object has the exact text of each member. There are no structs: encoding/json takes names in any case for theirs.
type object map[string]json.RawMessage

// text is the JSON of a member, empty for null as for an absent one; shown is for the terminal.
func (o object) text(name string) string  { return strings.TrimSuffix(string(o[name]), "null") }
func (o object) shown(name string) string { return fmt.Sprintf("%+q", strings.Trim(o.text(name), `"`)) }

func (o object) canonicalWithout(names string) []byte {
	var kept, members []string
	for name := range o {
		if !strings.Contains(names, " "+name+" ") {
			kept = append(kept, name)
		}
	}
	sort.Strings(kept)
	for _, name := range kept {
		members = append(members, `"`+name+`":`+string(o[name]))
	}
	return []byte("{" + strings.Join(members, ",") + "}")
}

// parse reads an object, which has fewer tokens when it is written again if a name stood twice in it.
func parse(data []byte, reason string, isCanonical bool) (found object) {
	var whole any
	ok := len(data) <= 16<<20 && utf8.Valid(data) && json.Unmarshal(data, &whole) == nil
	again, _ := json.Marshal(whole)
	count, deepest := countTokens(data)
	countAgain, _ := countTokens(again)
	ok = ok && count == countAgain && deepest <= mostDeep && json.Unmarshal(data, &found) == nil && found != nil
	ok = ok && (!isCanonical || string(found.canonicalWithout("")) == string(data))
	require(ok, reason, "There is no JSON object, or one with a name twice, too deep, or not in canonical form.")
	return found
}

func get[T any](o object, name, reason string) (found T) {
	require(json.Unmarshal([]byte(o.text(name)), &found) == nil, reason, "There is no %s of the right type.", name)
	return found
}

// texts is a list of texts. Each is read as a pointer: encoding/json would take null for an empty text.
func texts(o object, name, reason string) (found []string) {
	for _, one := range get[[]*string](o, name, reason) {
		require(one != nil, reason, "There is no %s of the right type.", name)
		found = append(found, *one)
	}
	return found
}
