package upgrade_test

import (
	"os/exec"
	"strings"
)

// pluginsWork runs the plugins of both versions with the hub as it is now: what they show is the
// same.
func (s *stage) pluginsWork(versions ...version) {
	s.t.Helper()
	s.log("both plugins are used")
	for _, command := range []struct{ args, says string }{
		{"clusters", embedded}, {"cordon full", "already cordoned"}, {"jobs", string(divided)}, {"describe " + string(divided), builtIn + ","},
		{"pods " + string(divided), string(divided) + "-3"}, {"logs " + string(divided) + " --index 5", "index 5"}, {"events " + string(divided), "Placed"},
		{"top", string(divided)},
	} {
		for _, v := range versions {
			args := append([]string{"--kubeconfig", s.hub.Kubeconfig(), "--namespace", s.ns}, strings.Fields(command.args)...)
			out, err := exec.CommandContext(s.Context(), v.program(plugin), args...).CombinedOutput()
			if err != nil || !strings.Contains(string(out), command.says) {
				s.t.Errorf("kubectl jobferry %s, by the plugin of %s: %v, no %q in\n%s", command.args, v.name, err, command.says, out)
			}
		}
	}
}

// expectVersion checks that the plugin knows which manager the hub has.
func (s *stage) expectVersion(v version) {
	s.t.Helper()
	manager, err := exec.CommandContext(s.Context(), v.program(manager), "--version").Output()
	if err != nil {
		s.t.Fatal(err)
	}
	shown, err := exec.CommandContext(s.Context(), v.program(plugin), "--kubeconfig", s.hub.Kubeconfig(), "version").Output()
	if want := "jobferry-manager: " + string(manager); err != nil || !strings.Contains(string(shown), want) {
		s.t.Errorf("kubectl jobferry version (error %v) says\n%swant\n%s", err, shown, want)
	}
}
