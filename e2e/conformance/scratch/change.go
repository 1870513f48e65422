package scratch

import (
	"fmt"
	"strings"
)

// Change replaces a text that occurs exactly once.
type Change struct{ Old, New string }

// Rename renames a function, so that another one can have its name. Its callers call that one.
func Rename(function string) Change {
	return Change{Old: "\nfunc " + function + "(", New: "\nfunc kubernetes_" + function + "("}
}

// Apply changes a source file, which is named in errors.
func Apply(file, text string, changes ...Change) (string, error) {
	for _, c := range changes {
		if n := strings.Count(text, c.Old); n != 1 {
			return "", fmt.Errorf("%s has %q %d times, want it once: it isn't the source that these tests are made from", file, strings.TrimSpace(c.Old), n)
		}
		text = strings.Replace(text, c.Old, c.New, 1)
	}
	return text, nil
}
