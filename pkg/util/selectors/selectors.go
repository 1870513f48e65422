// Package selectors reads selectors that users write. It is pure.
package selectors

import (
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
)

// Bounds of a selector: in bytes, and in what stands between its commas, which is compared with the
// labels of each object that it may select.
const (
	MaxBytes = 8 << 10
	MaxTerms = 250
)

// Parse reads a label selector.
func Parse(text string) (labels.Selector, error) {
	if err := check(text); err != nil {
		return nil, err
	}
	return labels.Parse(text)
}

// ParseFields reads a field selector.
func ParseFields(text string) (fields.Selector, error) {
	if err := check(text); err != nil {
		return nil, err
	}
	return fields.ParseSelector(text)
}

func check(text string) error {
	if terms := strings.Count(text, ",") + 1; len(text) > MaxBytes || terms > MaxTerms {
		return fmt.Errorf("its %d bytes and %d terms are more than the %d and %d allowed", len(text), terms, MaxBytes, MaxTerms)
	}
	return nil
}
