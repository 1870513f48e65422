package admission_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// fence is a block of commands, and the output that the next block shows, if there is one.
var fence = regexp.MustCompile("(?s)```sh\n(.*?)```\n(?:```text\n(.*?)```\n)?")

// The commands of docs/submit.md do what the page says.
func TestDocs(t *testing.T) {
	h := hubFor(t, newHub).withPolicies("policy")
	text, err := os.ReadFile(config("..", "docs", "submit.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks := fence.FindAllStringSubmatch(string(text), -1)
	if len(blocks) < 5 {
		t.Fatalf("found only %d blocks of commands", len(blocks))
	}
	t.Cleanup(func() { h.leave("team-a") })
	for _, block := range blocks {
		cmd := exec.CommandContext(h.Context(), "bash", "-euc", block[1])
		cmd.Env = append(os.Environ(), "KUBECONFIG="+h.Hub.Kubeconfig(), "HOME="+t.TempDir(),
			"PATH="+filepath.Dir(h.Hub.KubectlProgram())+":"+os.Getenv("PATH"))
		out, err := cmd.CombinedOutput()
		refused := strings.Contains(block[2], "denied request")
		if (err != nil) != refused {
			t.Fatalf("%s%v: %s", block[1], err, out)
		}
		if block[2] != "" && string(out) != block[2] {
			t.Errorf("%sprints\n%snot\n%s", block[1], out, block[2])
		}
	}
}
