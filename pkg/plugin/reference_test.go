package plugin

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
	"k8s.io/utils/clock"
)

var update = flag.Bool("update", false, "write docs/reference/kubectl.md anew")

// reference heads the page that is made from the commands.
const reference = `# kubectl jobferry

<!-- Made by: go test ./pkg/plugin -run TestReference -update -->

With this page you look up what each command of the plugin does, and its flags.

Install the plugin [from a release](release.md#install-from-a-release), or build it:
` + "`make build`" + ` creates the program ` + "`kubectl-jobferry`" + ` in ` + "`bin/`" + `, and
` + "`kubectl_complete-jobferry`" + ` beside it. Put both on your PATH: kubectl then has the command
` + "`kubectl jobferry`" + `, and its shell completion completes verbs, flags, and names of Jobs, Pods, workers
and namespaces for it. Krew puts only the first on your PATH: copy the second there for completion.

The hub is the cluster of kubectl's current context. All flags of kubectl that choose a cluster, a
namespace or a user (` + "`--context`, `-n`, `--as`" + `, ...) work here. The output has colours only in
a terminal, and none if ` + "`NO_COLOR`" + ` is set.

| exit code | meaning |
|---|---|
| 0 | the command succeeded |
| 1 | the command failed; standard error gives the reason, and says what to do |
| 2 | the arguments are invalid |
| 3 | the operation wasn't complete before the timeout; it continues, unless standard error says to run it again |

` + "`exec`" + ` returns the exit code of the command that it runs.

The plugin works with a manager of the same minor release, of the one before, and of the one after. If
they're further apart, each command prints a warning on standard error.
`

// docs/reference/kubectl.md is what the commands say of themselves.
func TestReference(t *testing.T) {
	const file = "../../docs/reference/kubectl.md"
	var b strings.Builder
	b.WriteString(reference)
	for _, cmd := range newCLI(genericiooptions.NewTestIOStreamsDiscard(), clock.RealClock{}).command().Commands() {
		if cmd.IsAvailableCommand() {
			section(&b, cmd)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	documented, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(documented), b.String()); diff != "" {
		t.Errorf("%s (-documented +commands; -update writes it):\n%s", file, diff)
	}
}

func section(b *strings.Builder, cmd *cobra.Command) {
	text := cmd.Long
	if text == "" {
		text = cmd.Short + "."
	}
	var paragraphs []string
	for line := range strings.Lines(text) {
		paragraphs = append(paragraphs, strings.TrimSpace(line))
	}
	fmt.Fprintf(b, "\n## %s\n\n%s\n\n```\n%s\n```\n", cmd.Name(), strings.Join(paragraphs, "\n"), cmd.UseLine())
	if cmd.Example != "" {
		var lines []string
		for line := range strings.Lines(cmd.Example) {
			lines = append(lines, strings.TrimSpace(line))
		}
		fmt.Fprintf(b, "\n```\n%s\n```\n", strings.Join(lines, "\n"))
	}
	if flags := cmd.NonInheritedFlags(); flags.HasAvailableFlags() {
		fmt.Fprintf(b, "\n```\n%s```\n", flags.FlagUsages())
	}
}
