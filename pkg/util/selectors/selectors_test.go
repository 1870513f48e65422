package selectors_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/jobferry/jobferry/pkg/util/costtest"
	"github.com/jobferry/jobferry/pkg/util/selectors"
)

func TestBounds(t *testing.T) {
	const most = selectors.MaxTerms
	for text, want := range map[string]bool{
		"":                                   true,
		"region=eu,gpu in (a100,h100),!slow": true,
		"region eu":                          false,
		strings.Repeat("a,", most-1) + "a":   true,
		strings.Repeat("a,", most) + "a":     false,
		"a in (" + strings.Repeat("b,", most-1) + "b)":  true,
		"a in (" + strings.Repeat("b,", most) + "b)":    false,
		strings.Repeat(" ", selectors.MaxBytes-1) + "a": true,
		strings.Repeat(" ", selectors.MaxBytes) + "a":   false,
	} {
		if _, err := selectors.Parse(text); (err == nil) != want {
			t.Errorf("%.40q, %d bytes: %v", text, len(text), err)
		}
	}
	for text, want := range map[string]bool{
		"":                                      true,
		"metadata.name=a,metadata.namespace!=b": true,
		"a":                                     false,
		strings.Repeat("a=b,", most-1) + "a=b":  true,
		strings.Repeat("a=b,", most) + "a=b":    false,
		"a=" + strings.Repeat("b", selectors.MaxBytes): false,
	} {
		if _, err := selectors.ParseFields(text); (err == nil) != want {
			t.Errorf("%.40q, %d bytes, of fields: %v", text, len(text), err)
		}
	}
}

func FuzzCost(f *testing.F) {
	f.Add("a", ",a", "")
	f.Add("a in (b", ",b", ")")
	f.Add("a=b", ",a=b", "")
	f.Add("", "(", "")
	costtest.Check(f, 64<<10, 8, func(text string) {
		if s, err := selectors.Parse(text); err == nil {
			s.Matches(labels.Set{"a": "b"})
		}
		if s, err := selectors.ParseFields(text); err == nil {
			s.Matches(fields.Set{"a": "b"})
		}
	})
}
