package checkout

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestParseVersion(t *testing.T) {
	for _, valid := range []string{"v0.1.0", "v1.22.333", "v1.2.3-rc.1"} {
		if version, err := ParseVersion(valid); err != nil || string(version) != valid {
			t.Errorf("%s: %q, %v", valid, version, err)
		}
	}
	for _, row := range []struct{ text, says string }{
		{"", "such as v1.2.3"},
		{"v", "such as v1.2.3"},
		{"0.1.0", "such as v1.2.3"},
		{"v1.2", "such as v1.2.3"},
		{"v01.2.3", "such as v1.2.3"},
		{"v1.2.3-", "such as v1.2.3"},
		{"vv1.2.3", "such as v1.2.3"},
		{"v1.2.3 ", "such as v1.2.3"},
		{"latest", "such as v1.2.3"},
		{"v1.2.3-rc.1+amd64", "write v1.2.3-rc.1 without +amd64"},
	} {
		if version, err := ParseVersion(row.text); err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("%q: %q, %v", row.text, version, err)
		}
	}
	if version := Version("v1.2.3-rc.1"); version.Plain() != "1.2.3-rc.1" || !version.Prerelease() || Version("v1.2.3").Prerelease() {
		t.Errorf("plain %s, prerelease %v", version.Plain(), version.Prerelease())
	}
}

func TestNotes(t *testing.T) {
	const changelog = "# Changelog\n\n## Unreleased\n\nNot yet.\n\n## v0.2.0 (2026-12-01)\n\n### Added\n\n- [One](docs/one.md).\n\n## v0.2.0-rc.1\n\n## v0.1.0\n\nFirst.\n"
	for version, want := range map[Version]string{
		"v0.2.0": "### Added\n\n- [One](https://github.com/jobferry/jobferry/blob/v0.2.0/docs/one.md).\n",
		"v0.1.0": "First.\n",
	} {
		if notes, err := Notes(changelog, version); err != nil || notes != want {
			t.Errorf("%s: %q, %v", version, notes, err)
		}
	}
	for _, absent := range []Version{"v0.2.0-rc.1", "v0.2", "v0.3.0"} {
		if notes, err := Notes(changelog, absent); err == nil || !strings.Contains(err.Error(), `"## `+string(absent)+`"`) {
			t.Errorf("%s: %q, %v", absent, notes, err)
		}
	}
}

func git(t *testing.T, root string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-03-01T12:00:00+09:00", "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

func write(t *testing.T, root, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestOpen(t *testing.T) {
	root := t.TempDir()
	git(t, root, "init", "--quiet")
	write(t, root, "CHANGELOG.md", "## v0.1.0\n\nFirst.\n")
	write(t, root, ".gitignore", "/dist/\n")
	git(t, root, "add", ".")
	git(t, root, "commit", "--quiet", "-m", "first")
	git(t, root, "tag", "-a", "-m", "annotated", "v0.1.0")

	source, err := Open(t.Context(), root, "v0.1.0")
	if err != nil || source.Notes != "First.\n" || len(source.Commit) != 40 {
		t.Fatalf("%+v, %v", source, err)
	}
	if want := time.Date(2026, 3, 1, 3, 0, 0, 0, time.UTC); source.Time != want {
		t.Errorf("the time is %v, want %v", source.Time, want)
	}
	refused := func(version, says string) {
		t.Helper()
		if _, err := Open(t.Context(), root, version); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", version, err, says)
		}
	}
	refused("v0.2.0", `CHANGELOG.md says nothing under "## v0.2.0"`)
	refused("0.1.0", "no semantic version")
	write(t, root, "untracked.go", "package main\n")
	refused("v0.1.0", "commit or remove them\n?? untracked.go")
	git(t, root, "add", ".")
	git(t, root, "commit", "--quiet", "-m", "second")
	refused("v0.1.0", "the tag v0.1.0 is commit "+source.Commit)
	write(t, root, ".gitignore", "")
	refused("v0.1.0", " M .gitignore")
}

func TestOpenOutsideOfARepository(t *testing.T) {
	if _, err := Open(t.Context(), t.TempDir(), "v0.1.0"); err == nil || !strings.Contains(err.Error(), "not a git repository") {
		t.Error(err)
	}
}
