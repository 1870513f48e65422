// Package checkout says what a release is made from: a clean checkout of a commit, whose changelog
// has the version.
package checkout

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/Masterminds/semver/v3"
)

// Source is what a release is made from.
type Source struct {
	Root    string
	Version Version
	Commit  string
	// Time is that of the commit. All files of the release have it.
	Time time.Time
	// Notes is what the changelog says of the version.
	Notes string
}

// Version is a semantic version with a leading v, such as v1.2.3-rc.1.
type Version string

// Plain is the version as charts have it: without the v.
func (v Version) Plain() string { return strings.TrimPrefix(string(v), "v") }

// Prerelease says whether it's one such as v1.2.3-rc.1.
func (v Version) Prerelease() bool { return strings.Contains(string(v), "-") }

// ParseVersion accepts what is also a git tag, an image's tag and, without the v, a chart's
// version.
func ParseVersion(text string) (Version, error) {
	plain, v := strings.CutPrefix(text, "v")
	parsed, err := semver.StrictNewVersion(plain)
	switch {
	case err != nil || !v:
		return "", fmt.Errorf("VERSION=%s is no semantic version: write one such as v1.2.3 or v1.2.3-rc.1", text)
	case parsed.Metadata() != "":
		return "", fmt.Errorf("VERSION=%s: an image's tag can't have build metadata: write v%s without +%s",
			text, strings.TrimSuffix(plain, "+"+parsed.Metadata()), parsed.Metadata())
	}
	return Version(text), nil
}

// Open refuses a checkout that a release can't be made from.
func Open(ctx context.Context, root, version string) (Source, error) {
	parsed, err := ParseVersion(version)
	if err != nil {
		return Source{}, err
	}
	source := Source{Root: root, Version: parsed}
	git := repository{ctx: ctx, root: root}
	if changes := git.lines("status", "--porcelain", "--untracked-files=normal"); changes != "" && git.err == nil {
		return Source{}, fmt.Errorf("%s has changes that no commit has: commit or remove them\n%s", root, changes)
	}
	source.Commit = git.lines("rev-parse", "HEAD")
	seconds := git.lines("log", "-1", "--format=%ct")
	tagged := git.lines("for-each-ref", "--format=%(if)%(*objectname)%(then)%(*objectname)%(else)%(objectname)%(end)", "refs/tags/"+version)
	if git.err != nil {
		return Source{}, git.err
	}
	if tagged != "" && tagged != source.Commit {
		return Source{}, fmt.Errorf("the tag %s is commit %s, but the checkout is at %s: check the tag out, or choose another version",
			version, tagged, source.Commit)
	}
	unix, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return Source{}, fmt.Errorf("the time of commit %s: %w", source.Commit, err)
	}
	source.Time = time.Unix(unix, 0).UTC()
	changelog, err := os.ReadFile(filepath.Join(root, "CHANGELOG.md"))
	if err != nil {
		return Source{}, err
	}
	source.Notes, err = Notes(string(changelog), parsed)
	return source, err
}

// Notes is the section of a version in a changelog. Its links, which are relative to the
// repository, become absolute: a release's page isn't in it.
func Notes(changelog string, version Version) (string, error) {
	var section []string
	found := false
	for line := range strings.Lines(changelog) {
		if heading, ok := strings.CutPrefix(line, "## "); ok {
			words := strings.Fields(heading)
			if found {
				break
			}
			found = len(words) > 0 && words[0] == string(version)
			continue
		}
		if found {
			section = append(section, line)
		}
	}
	notes := strings.TrimSpace(strings.Join(section, ""))
	if notes == "" {
		return "", fmt.Errorf(`CHANGELOG.md says nothing under "## %s": write what has changed there, and commit it`, version)
	}
	return strings.ReplaceAll(notes, "](docs/", "](https://github.com/jobferry/jobferry/blob/"+string(version)+"/docs/") + "\n", nil
}

// repository runs git until the first error.
type repository struct {
	ctx  context.Context
	root string
	err  error
}

func (r *repository) lines(args ...string) string {
	if r.err != nil {
		return ""
	}
	cmd := exec.CommandContext(r.ctx, "git", append([]string{"-C", r.root}, args...)...)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	out, err := cmd.Output()
	if err != nil {
		r.err = fmt.Errorf("git %s: %w", strings.Join(args, " "), err)
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
			r.err = fmt.Errorf("%w: %s", r.err, bytes.TrimSpace(exit.Stderr))
		}
	}
	return strings.TrimRight(string(out), "\n")
}
