package plugin

import (
	"context"
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
