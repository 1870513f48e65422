// Package quantities finds resource quantities that mayn't be decoded: "1e999999999" keeps whoever
// compares it with a number busy for ever, and some texts whoever decodes them. Those that an API
// server sends are less than 2^63, or have that many digits.
package quantities

import (
	"errors"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Bounds of a quantity.
const (
	MaxBytes          = 64
	MaxExponentDigits = 2
)

// signAndSuffix is how long these are at most, with an exponent.
const signAndSuffix = 8

// Type of a quantity.
var Type = reflect.TypeFor[resource.Quantity]()

// IsCostly reports whether a text mayn't be decoded as a quantity.
func IsCostly(text string) bool {
	text = strings.TrimSpace(text)
	if len(text) > MaxBytes {
		return true
	}
	at := strings.IndexAny(text, "eE")
	return at >= 0 && len(strings.TrimLeft(text[at+1:], "+-")) > MaxExponentDigits
}

var errCostly = errors.New("a quantity of so many characters, or with such an exponent, isn't read")

// Parse reads a quantity that isn't costly.
func Parse(text string) (resource.Quantity, error) {
	if IsCostly(text) {
		return resource.Quantity{}, errCostly
	}
	return resource.ParseQuantity(text)
}

// MayHaveCostly looks for what may be such a text, in any encoding, and finds much else, such as
// UIDs.
func MayHaveCostly(data []byte) bool {
	digits, exponent := 0, 0 // how many there are just before, with the e of an exponent
	for i, b := range data {
		isDigit := '0' <= b && b <= '9'
		switch {
		case isDigit && exponent > 0:
			if exponent++; exponent > MaxExponentDigits+1 {
				return true
			}
			digits++
		case isDigit || b == '.':
			digits, exponent = digits+1, 0
		case b == 'e' || b == 'E':
			digits, exponent = 0, 1
		case (b == '+' || b == '-') && exponent == 1 && (data[i-1] == 'e' || data[i-1] == 'E'):
		default:
			digits, exponent = 0, 0
		}
		if digits > MaxBytes-signAndSuffix {
			return true
		}
	}
	return false
}
