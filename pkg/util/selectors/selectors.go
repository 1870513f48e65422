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

// What a requirement of a selector takes in memory, and each of its values, beside their texts.
const (
	requirementBytes = 56
	valueBytes       = 16
)

// Size is about how many bytes a selector takes in memory; none if it is nil.
func Size(s labels.Selector) (bytes int) {
	if s == nil {
		return 0
	}
	requirements, _ := s.Requirements()
	for i := range requirements {
		bytes += requirementBytes + len(requirements[i].Key())
		for _, value := range requirements[i].ValuesUnsorted() {
			bytes += valueBytes + len(value)
		}
	}
	return bytes
}
