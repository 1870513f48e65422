package quantities

import (
	"reflect"
	"regexp"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/client-go/kubernetes/scheme"
	"pgregory.net/rapid"

	"github.com/jobferry/jobferry/pkg/util/costtest"
)

func TestIsCostly(t *testing.T) {
	for text, want := range map[string]bool{
		"1": false, "-1.5": false, "9223372036854775807": false, "100m": false, "5Ei": false, "5E": false, "1e3": false, "12E-6": false,
		"1e99": false, "1e100": true, "1e-999": true, "1E+999999999": true, "  1e999999999 ": true, "123456789012345678901e1000000": true,
		strings.Repeat("9", MaxBytes): false, strings.Repeat("9", MaxBytes+1): true, "0." + strings.Repeat("0", 1000) + "1": true,
	} {
		if got := IsCostly(text); got != want {
			t.Errorf("%q: %t, want %t", text, got, want)
		}
	}
}

// What is costly is found in what is around it, and what isn't can be counted with at once.
func TestCostlyIsFound(t *testing.T) {
	part := rapid.SampledFrom([]string{"1", "99", "000", ".", "e", "E", "+", "-", "Ki", "m", " ", strings.Repeat("7", 60)})
	rapid.Check(t, func(t *rapid.T) {
		text := strings.Join(rapid.SliceOfN(part, 0, 8).Draw(t, "parts"), "")
		if !IsCostly(text) {
			if q, err := resource.ParseQuantity(strings.TrimSpace(text)); err == nil {
				_, _ = q.CmpInt64(5), q.String()
			}
			return
		}
		if _, err := resource.ParseQuantity(exponent.ReplaceAllString(strings.TrimSpace(text), "e1")); err == nil && !MayHaveCostly([]byte(`{"x":"`+text+`"}`)) {
			t.Fatalf("%q isn't found", text)
		}
	})
}

var exponent = regexp.MustCompile(`[eE][+-]?[0-9]+$`)

func TestHasCostlyJSON(t *testing.T) {
	for text, want := range map[string]bool{
		`{"metadata":{"labels":{"version":"1e9999999"},"uid":"1e123456"},"spec":{"containers":[{"args":["1e9999"]}]}}`: false,
		`{"spec":{"containers":[{"resources":{"limits":{"cpu":"1e9999999"}}}]}}`:                                       true,
		`{"spec":{"containers":[{"resources":{"limits":{"cpu":1e9999999}}}]}}`:                                         true,
		`{"SPEC":{"containers":[{"resources":{"limits":{"cpu":"1e9999999"}}}]}}`:                                       true,
		`{"spec":{"containers":[{"resources":{"limits":{"cpu":"1e9999999","cpu":"1"}}}]}}`:                             true,
		`{"spec":{"overhead":{"cpu":"1"},"volumes":[{"emptyDir":{"sizeLimit":"1e9999999"}}]}}`:                         true,
		`{"spec":{"unknown":{"cpu":"1e9999999"}}}`:                                                                     false,
		`{"spec":`:            false,
		`[{"a":"1e9999999",x`: false,
		`["1e9999999",x`:      false,
	} {
		if got := HasCostlyJSON([]byte(text), reflect.TypeFor[corev1.Pod]()); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
	}
	for text, want := range map[string]bool{`{"a":["1e999"]}`: true, `{"a":"1e999Ki"}`: true, `{"1e999":"x"}`: false, `{"a":"x1e999"}`: false} {
		if got := HasCostlyJSON([]byte(text), nil); got != want {
			t.Errorf("%s, without a type: %t, want %t", text, got, want)
		}
	}
}

// TestHasCostlyObject: by what it's decoded as.
func TestHasCostlyObject(t *testing.T) {
	const limits, label = `"spec":{"limits":{"cpu":"1e9999"},"containers":[{"resources":{"limits":{"cpu":"1e9999"}}}]}`, `"metadata":{"labels":{"a":"1e9999"}}`
	pod := `"apiVersion":"v1","kind":"Pod",`
	for text, want := range map[string]bool{
		`{` + pod + limits + `}`:                                                 true,
		`{` + pod + label + `}`:                                                  false,
		`{"kind":"Pod",` + label + `}`:                                           true,
		`{"apiVersion":"v1",` + label + `}`:                                      true,
		`{` + label + `}`:                                                        true,
		`{"apiVersion":"v1","kind":"Pads",` + label + `}`:                        true,
		`{"apiVersion":"karpenter.sh/v1",` + label + `}`:                         true,
		`{"apiVersion":"karpenter.sh/v1","kind":"Status",` + limits + `}`:        false,
		`{"apiVersion":"karpenter.sh/v1","kind":"NodePool",` + limits + `}`:      false,
		`{"apiVersion":"karpenter.sh","kind":"NodePool",` + limits + `}`:         true,
		`{"apiVersion":"karpenter.sh/v1","kind":"Foo",` + pod + limits + `}`:     true,
		`{` + pod + `"apiVersion":"karpenter.sh/v1","kind":"Foo",` + label + `}`: false,
		`{"apiVersion":"a/b/c","kind":"Pod",` + limits + `}`:                     false,
		`["1e9999"]`: false,
	} {
		if got := HasCostlyObject([]byte(text), scheme.Scheme); got != want {
			t.Errorf("%s: %t, want %t", text, got, want)
		}
		noKind := !strings.Contains(text, `"kind"`)
		if got := HasCostlyWithKind([]byte(text), scheme.Scheme); got != (want && !noKind) {
			t.Errorf("%s as an error: %t", text, got)
		}
		event := []byte(`{"type":"ADDED","a":"1e9999","object":` + text + `}`)
		if got := HasCostlyEvent(event, scheme.Scheme); got != want {
			t.Errorf("%s: %t, want %t", event, got, want)
		}
	}
}

func FuzzCost(f *testing.F) {
	f.Add("1", "0", "")
	f.Add("1e", "9", "")
	f.Add(`{"a":"1e9999",`, `"a":{},`, `"a":1}`)
	f.Add(`["1e9999"`, ",[", "")
	f.Add(`["1e9999"`, ",1e99999", "]")
	f.Add(`[{"a":"1e9999",x`, " ", "")
	f.Add(`{"a":"1e9999"`, `,"object":{"kind":"Pod","apiVersion":"v1","a":"1e9999"}`, "}")
	costtest.Check(f, 64<<10, 150, func(text string) {
		if q, err := Parse(text); err == nil {
			_, _ = q.CmpInt64(5), q.String()
		}
		HasCostlyJSON([]byte(text), nil)
		HasCostlyJSON([]byte(text), reflect.TypeFor[corev1.Pod]())
		HasCostlyObject([]byte(text), scheme.Scheme)
		HasCostlyEvent([]byte(text), scheme.Scheme)
		HasCostlyWithKind([]byte(text), scheme.Scheme)
	})
}
