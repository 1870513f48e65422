package demo_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/docs"
)

// reader follows README.md in another terminal, with what the demo has printed for that.
type reader struct {
	t            *testing.T
	home, export string
}

// followReadme plays the commands that README.md has for the demo's clusters, as printed, and tries
// what the chart brings beside the manager: admission, and roles.
func followReadme(t *testing.T, r *reader) {
	page, err := os.ReadFile(checkout.Path("README.md"))
	if err != nil {
		t.Fatal(err)
	}
	blocks, err := docs.Parse(string(page))
	if err != nil {
		t.Fatal(err)
	}
	played := 0
	for _, block := range blocks {
		if block.By != "e2e/demo" || strings.HasPrefix(block.Text, "make demo") {
			continue
		}
		played++
		if shown := r.runs(block.Text); block.Prints != nil && !docs.Matches(*block.Prints, shown) {
			t.Errorf("README.md:%d:\n%s\nshould print\n%s\nbut prints\n%s", block.Line, block.Text, *block.Prints, shown)
		}
	}
	if played < 2 {
		t.Errorf("README.md has %d blocks for the demo's clusters", played)
	}
	r.hello()
	r.refusals()
	r.viewers()
}

// hello plays what the demo prints for the namespace that kubectl uses by default.
func (r *reader) hello() {
	r.t.Helper()
	r.runs("kubectl create job hello --image=busybox -- echo hello")
	r.runs("kubectl wait job/hello --for=condition=Complete --timeout=2m && kubectl jobferry logs hello")
	if shown := r.runs("kubectl jobferry jobs"); !strings.Contains(shown, "hello") {
		r.t.Errorf("in namespace default, kubectl jobferry jobs prints %s", shown)
	}
}

// refusals tries Jobs that Jobferry's admission refuses.
func (r *reader) refusals() {
	r.t.Helper()
	const job = "kubectl create job bad -n team-a --image=busybox --dry-run=client -o json |" +
		" kubectl annotate --local -f - -o json jobferry.dev/%s | kubectl create -f -"
	for annotation, want := range map[string]string{
		"cluster-selector='region eu'": "is not a label selector", "max-clusters=many": "jobferry.dev/max-clusters",
	} {
		if shown, err := r.bash(strings.ReplaceAll(job, "%s", annotation)); err == nil || !strings.Contains(shown, want) {
			r.t.Errorf("a Job with %s: error %v, and it prints %s", annotation, err, shown)
		}
	}
}

// viewers looks at a Job as a user who has the role view in its namespace.
func (r *reader) viewers() {
	r.t.Helper()
	r.runs("kubectl create rolebinding viewers -n team-a --clusterrole=view --user=viewer")
	for _, command := range []string{
		"kubectl jobferry jobs", "kubectl get dispatchedjobs", "kubectl jobferry pods pi", "kubectl jobferry describe pi",
	} {
		if shown := r.runs(command + " -n team-a --as viewer"); !strings.Contains(shown, "pi") {
			r.t.Errorf("%s prints, for a user with the role view, %s", command, shown)
		}
	}
	r.runs("kubectl jobferry logs pi -n team-a --as viewer")
	if shown, err := r.bash("kubectl jobferry exec pi -n team-a --as viewer -- true"); err == nil || !strings.Contains(shown, "orbidden") {
		r.t.Errorf("exec, for a user with the role view: error %v, and it prints %s", err, shown)
	}
}

// runs runs commands, which must succeed.
func (r *reader) runs(commands string) string {
	r.t.Helper()
	shown, err := r.bash(commands)
	if err != nil {
		r.t.Errorf("%v:\n%s\nprints\n%s", err, commands, shown)
	}
	return shown
}

func (r *reader) bash(commands string) (string, error) {
	cmd := exec.CommandContext(r.t.Context(), "bash", "-euo", "pipefail", "-c", r.export+"\n"+commands)
	cmd.Dir = checkout.Path()
	cmd.Env = []string{"HOME=" + r.home, "PATH=" + os.Getenv("PATH")}
	shown, err := cmd.CombinedOutput()
	return string(shown), err
}
