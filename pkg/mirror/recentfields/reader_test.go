package recentfields

import (
	"bytes"
	"runtime"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/jobferry/jobferry/pkg/util/jsonscan"
)

// FuzzCanonical: fingerprints are compared with those that a mirror was written with, maybe by
// another release, which made them of trees.
func FuzzCanonical(f *testing.F) {
	for _, seed := range []string{
		`{"b":1,"a":[true,false,null,{}],"\u0061b":"x"}`, `[1, -1, -0, 1.50, 1e3, 1e30, 123456789012345678901, 0.1, 12345678901234567]`,
		`["", "<a & b>", "\u2028", "é", "\"\\\n", "a/b"]`, ` { } `, `{"a":{"c":1,"b":2}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var tree any
		if utiljson.Unmarshal(text, &tree) != nil || strings.Count(string(marshal(tree)), ":") < bytes.Count(text, []byte(":")) {
			return // no JSON, or a name is there twice, which no API server sends
		}
		var got bytes.Buffer
		canonical(&got, jsonscan.New(text))
		if want := marshal(tree); !bytes.Equal(got.Bytes(), want) {
			t.Errorf("got %s, want %s", got.Bytes(), want)
		}
	})
}

// TestFingerprintsStayAsTheyWere: a mirror keeps them over an upgrade.
func TestFingerprintsStayAsTheyWere(t *testing.T) {
	got := Of([]byte(`{"template":{"spec":{"containers":[{"future":{"b":"<1>","a":[1.0,{}]}},{"name":"b","future":2}]}}}`))
	const path = "spec.template.spec.containers[*].future"
	want := Fingerprint([]any{map[string]any{"b": "<1>", "a": []any{float64(1), map[string]any{}}}, int64(2)})
	if got[path] != want || len(got) != 1 {
		t.Errorf("got %v, want %s", got, want)
	}
}

// TestRecentFieldsTakeLittle, of many, and of what is around them.
func TestRecentFieldsTakeLittle(t *testing.T) {
	text := marshal(variables(50_000, "x", false))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	found := Of(text)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > uint64(len(text)) || len(found) != 1 {
		t.Errorf("%v take %d bytes, of a text of %d", found, took, len(text))
	}
}
