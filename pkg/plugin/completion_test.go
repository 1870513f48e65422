package plugin

import (
	"context"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

// What a shell would expand is never offered to it, whoever named it.
func TestShellsGetPlainNames(t *testing.T) {
	cmd := &cobra.Command{}
	cmd.SetContext(t.Context())
	names, _ := complete(cmd, "j", func(context.Context) ([]string, error) {
		return []string{"job-a", "j$(touch${IFS}file)", "j`touch file`", "j;ls", "j\x1b[2J", "other", "job-b"}, nil
	})
	if !slices.Equal(names, []string{"job-a", "job-b"}) {
		t.Errorf("%q", names)
	}
}

// A Job may have very many indexes: those that begin as the word does are counted up.
func TestIndexesFrom(t *testing.T) {
	for _, row := range []struct {
		begun       string
		completions int
		want        string
	}{
		{"", 3, "[0 1 2]"},
		{"0", 30, "[0]"},
		{"1", 12, "[1 10 11]"},
		{"2", 2, "[]"},
		{"01", 30, "[]"},
		{"-1", 30, "[]"},
		{"x", 30, "[]"},
		{"99999999999999999999", math.MaxInt32, "[]"},
		{"214748364", math.MaxInt32, "[214748364 2147483640 2147483641 2147483642 2147483643 2147483644 2147483645 2147483646]"},
	} {
		if got := fmt.Sprint(indexesFrom(row.begun, row.completions)); got != row.want {
			t.Errorf("%q of %d: %s, want %s", row.begun, row.completions, got, row.want)
		}
	}
	for _, begun := range []string{"", "7", "12"} {
		if got := indexesFrom(begun, math.MaxInt32); len(got) != indexesOffered {
			t.Errorf("%q: %d indexes", begun, len(got))
		}
	}
}
