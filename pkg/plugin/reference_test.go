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

var update = flag.Bool("update", false, "write docs/kubectl.md anew")

// reference heads the page that is made from the commands.
const reference = `# kubectl jobferry

<!-- Made by: go test ./pkg/plugin -run TestReference -update -->

Put ` + "`kubectl-jobferry`" + ` on your PATH (` + "`make build`" + ` makes it in ` + "`bin/`" + `), and kubectl has the command ` + "`kubectl jobferry`" + `. With ` + "`kubectl_complete-jobferry`" + ` beside it, kubectl's shell
completion completes it, too: verbs, flags, names of Jobs, Pods and workers.

The hub is the cluster of kubectl's context; all of kubectl's flags for that (` + "`--context`, `-n`, `--as`" + `, ...) work here. Colours are for terminals, and not with ` + "`NO_COLOR`" + ` set.

| exit code | |
|---|---|
| 0 | done |
| 1 | it failed; standard error says why, and what to do |
| 2 | the arguments are invalid |
| 3 | it continues, but wasn't done before the timeout |

` + "`exec`" + ` has the exit code of its command.
`

// docs/kubectl.md is what the commands say of themselves.
func TestReference(t *testing.T) {
	const file = "../../docs/kubectl.md"
	var b strings.Builder
	b.WriteString(reference)
	for _, cmd := range New(genericiooptions.NewTestIOStreamsDiscard(), clock.RealClock{}).Commands() {
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
