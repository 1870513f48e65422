package subresources

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apiserver/pkg/authentication/user"

	"github.com/jobferry/jobferry/pkg/util/version"
)

func TestAgent(t *testing.T) {
	rows := map[string]string{
		"alice":                             `"alice"`,
		"system:serviceaccount:team-a:ci":   `"system:serviceaccount:team-a:ci"`,
		"Zoë":                               `"Zo\u00eb"`,
		"":                                  `""`,
		"a\r\nAuthorization: Bearer x":      `"a\r\nAuthorization: Bearer x"`,
		`bob"; job team-b/other)`:           `"bob\"; job team-b/other)"`,
		"\x1b[2J\x00\xff":                   `"\x1b[2J\x00\xff"`,
		strings.Repeat("x", maxAgentUser+1): `"` + strings.Repeat("x", maxAgentUser) + `\u2026"`,
	}
	for name, want := range rows {
		got := agent(&request{user: &user.DefaultInfo{Name: name}, key: types.NamespacedName{Namespace: "team", Name: "pi"}})
		if want := "jobferry-manager/" + version.Get() + " (user " + want + "; job team/pi)"; got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
	worst := agent(&request{user: &user.DefaultInfo{Name: strings.Repeat("\xff", 10_000)}, key: types.NamespacedName{
		Namespace: strings.Repeat("n", 63), Name: strings.Repeat("j", 253),
	}})
	if len(worst) > 1024 || strings.ContainsFunc(worst, func(r rune) bool { return r < ' ' || r > '~' }) {
		t.Errorf("%d bytes: %q", len(worst), worst)
	}
}

// Each request to a worker names the user and the Job, and no user can name another.
func TestRequestsToAWorkerNameTheUser(t *testing.T) {
	w := newWorld(t)
	w.worker.on(logPath, func(out http.ResponseWriter, _ *http.Request) { fmt.Fprint(out, "a line") })
	w.worker.object("/api/v1/namespaces/team/events", corev1.EventList{})
	for _, what := range []string{"log", "pods", "events", "mirror"} {
		if got, err := w.get(what, func(r *http.Request) {
			r.Header.Set("X-Remote-User", `eve"; job b/c)`)
			r.Header.Set("User-Agent", "jobferry-manager (user \"bob\")")
		}); err != nil || got.code != http.StatusOK {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
	}
	w.worker.on(execPath, func(out http.ResponseWriter, _ *http.Request) { writeError(out, notYet("no")) })
	answer, _, _ := w.upgrade("exec")
	answer.Body.Close()
	heard := w.worker.heard()
	if len(heard) < 10 {
		t.Errorf("the worker heard %d requests", len(heard))
	}
	for _, h := range heard[:len(heard)-3] {
		if got := h["User-Agent"]; len(got) != 1 || !strings.HasSuffix(got[0], ` (user "user-eve\"; job b/c)"; job team/job)`) {
			t.Errorf("the worker heard of %q", got)
		}
	}
	for _, h := range heard[len(heard)-3:] { // the Job, its Pods, the command
		if got := h.Get("User-Agent"); !strings.HasSuffix(got, ` (user "user-"; job team/job)`) {
			t.Errorf("of a command, the worker heard of %q", got)
		}
	}
}

// Arguments of commands may be secret: they are logged only if that's asked for.
func TestArgumentsAreLoggedOnlyOnDemand(t *testing.T) {
	for _, asked := range []bool{false, true} {
		var lines []string
		h := &handler{options: Options{LogArguments: asked}, logger: funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{})}
		h.logSession(&request{
			user: &user.DefaultInfo{Name: "alice"}, key: types.NamespacedName{Namespace: "team", Name: "pi"},
			query: map[string][]string{"command": {"mysql", "--password=hunter2"}},
		}, &chosen{location: &location{link: &link{worker: "w"}}, pod: pod("pi-x")}, "main")
		if len(lines) != 1 || strings.Contains(lines[0], "hunter2") != asked || strings.Contains(lines[0], "mysql") != asked {
			t.Errorf("asked for %v: logged %q", asked, lines)
			continue
		}
		for _, want := range []string{`"user"="alice"`, `"job"={"name"="pi" "namespace"="team"}`, `"worker"="w"`, `"pod"="pi-x"`, `"container"="main"`, `"arguments"=1`} {
			if !strings.Contains(lines[0], want) {
				t.Errorf("%s isn't in %s", want, lines[0])
			}
		}
	}
}
