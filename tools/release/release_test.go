package main

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"io/fs"
	"log"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"sigs.k8s.io/yaml"

	"github.com/jobferry/jobferry/tools/release/checkout"
	"github.com/jobferry/jobferry/tools/release/statement"
)

var repository = filepath.Join("..", "..")

// toy is a clone of a repository like this one, whose programs are tiny.
func toy(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, path := range []string{"tools/build", "charts", "LICENSE", ".krew.yaml", ".gitignore", "cmd/kubectl-jobferry/kubectl_complete-jobferry"} {
		copyTo(t, dir, path)
	}
	write := func(name, text string) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("go.mod", "module github.com/jobferry/jobferry\n\ngo 1.26.0\n")
	write("pkg/util/version/version.go", "package version\n\nvar release string\n\nfunc Get() string { return release }\n")
	for _, program := range append(slices.Clone(inClusters), plugin) {
		write("cmd/"+program+"/main.go", "package main\n\nimport \"github.com/jobferry/jobferry/pkg/util/version\"\n\nfunc main() { print(version.Get()) }\n")
	}
	write("CHANGELOG.md", "## v0.9.1-rc.1\n\nThe notes.\n")
	git(t, dir, "init", "--quiet")
	git(t, dir, "add", ".")
	git(t, dir, "commit", "--quiet", "-m", "toy")
	return dir
}

// What completes the plugin's command lines is built with it, and only with it.
func TestBuildHasTheCompletion(t *testing.T) {
	dir := toy(t)
	for _, row := range []struct {
		programs []string
		want     bool
	}{{nil, true}, {[]string{plugin}, true}, {inClusters, false}} {
		out := t.TempDir()
		cmd := exec.CommandContext(t.Context(), filepath.Join(dir, "tools", "build"), append([]string{out}, row.programs...)...)
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, said)
		}
		info, err := os.Stat(filepath.Join(out, "kubectl_complete-jobferry"))
		if (err == nil) != row.want || err == nil && info.Mode().Perm()&0o111 == 0 {
			t.Errorf("%v: %v, %v", row.programs, info, err)
		}
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", append([]string{"-C", dir, "-c", "user.name=a", "-c", "user.email=a@example.com"}, args...)...)
	cmd.Env = append(os.Environ(), "GIT_COMMITTER_DATE=2026-03-01T12:00:00+09:00", "GIT_CONFIG_GLOBAL=/dev/null")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
}

// copyTo copies a file or folder of this repository to the same place in dir.
func copyTo(t *testing.T, dir, path string) {
	t.Helper()
	err := filepath.WalkDir(filepath.Join(repository, path), func(from string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(repository, from)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		data, err := os.ReadFile(from)
		if err != nil {
			return err
		}
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, relative)), 0o755); err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, relative), data, info.Mode().Perm())
	})
	if err != nil {
		t.Fatal(err)
	}
}

func command(t *testing.T, args ...string) string {
	t.Helper()
	var out bytes.Buffer
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatalf("%v: %v\n%s", args, err, out.String())
	}
	return out.String()
}

func contentOf(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	content := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if content[entry.Name()], err = os.ReadFile(filepath.Join(dir, entry.Name())); err != nil {
			t.Fatal(err)
		}
	}
	return content
}

// Two clones in two folders, with another umask and another environment, make the same release,
// byte for byte. It's whole, and a registry gives back what was pushed.
func TestRelease(t *testing.T) {
	origin := toy(t)
	var made []map[string][]byte
	var dist string
	for i, name := range []string{"one", "two/deeper"} {
		if i > 0 {
			defer syscall.Umask(syscall.Umask(0o077))
		}
		clone := filepath.Join(t.TempDir(), name)
		git(t, origin, "clone", "--quiet", origin, clone)
		dist = filepath.Join(clone, "dist")
		command(t, "build", "-root", clone, "-dist", dist, "-version", "v0.9.1-rc.1")
		made = append(made, contentOf(t, dist))
		// The second run has what would change it if it got through.
		t.Setenv("GOFLAGS", "-tags=other")
		t.Setenv("GOAMD64", "v3")
		t.Setenv("SOURCE_DATE_EPOCH", "1")
		t.Setenv("TZ", "Asia/Tokyo")
	}
	for name := range made[1] {
		if !bytes.Equal(made[0][name], made[1][name]) {
			t.Errorf("%s differs from one folder to the other", name)
		}
		for _, path := range []string{origin, filepath.Dir(dist)} {
			if bytes.Contains(made[1][name], []byte(path)) {
				t.Errorf("%s has the path %s", name, path)
			}
		}
	}
	checkFiles(t, made[0])
	if err := statement.Verify(dist); err != nil {
		t.Error(err)
	}
	checkPlugin(t, made[0])
	checkCharts(t, dist)
	checkPush(t, dist)
}

// checkFiles checks that a release has the files that docs/reference/release.md lists, and no
// others.
func checkFiles(t *testing.T, made map[string][]byte) {
	t.Helper()
	want := []string{
		"RELEASE_NOTES.md", "SHA256SUMS", "jobferry-0.9.1-rc.1.tgz", "jobferry-worker-0.9.1-rc.1.tgz", "jobferry.yaml",
		"jobferry_v0.9.1-rc.1_image.oci.tar", "provenance.intoto.json",
	}
	for _, platform := range platforms {
		for _, program := range platform.programs() {
			want = append(want, archiveName(program, "v0.9.1-rc.1", platform), program+"_v0.9.1-rc.1_"+platform.String()+".cdx.json")
		}
	}
	for _, name := range want {
		if len(made[name]) == 0 {
			t.Errorf("there's no %s", name)
		}
	}
	if len(made) != len(want) {
		t.Errorf("%d files, want %d", len(made), len(want))
	}
	if got := string(made["RELEASE_NOTES.md"]); got != "The notes.\n" {
		t.Errorf("the notes are %q", got)
	}
}

// checkPlugin checks krew's manifest, and runs the plugin that it's about.
func checkPlugin(t *testing.T, made map[string][]byte) {
	t.Helper()
	var manifest struct {
		APIVersion, Kind string
		Metadata         struct{ Name string }
		Spec             struct {
			Version, ShortDescription string
			Platforms                 []struct {
				Selector         struct{ MatchLabels map[string]string }
				URI, Sha256, Bin string
				Files            []struct{ From, To string }
			}
		}
	}
	if err := yaml.Unmarshal(made["jobferry.yaml"], &manifest); err != nil {
		t.Fatalf("%v in\n%s", err, made["jobferry.yaml"])
	}
	if manifest.Metadata.Name != "jobferry" || manifest.Spec.Version != "v0.9.1-rc.1" || len(manifest.Spec.Platforms) != len(platforms) {
		t.Errorf("%+v", manifest)
	}
	sums := string(made["SHA256SUMS"])
	for i, platform := range manifest.Spec.Platforms {
		want := platforms[i]
		name := archiveName(plugin, "v0.9.1-rc.1", want)
		if platform.Selector.MatchLabels["os"] != want.os || platform.Selector.MatchLabels["arch"] != want.arch ||
			platform.URI != "https://github.com/jobferry/jobferry/releases/download/v0.9.1-rc.1/"+name ||
			!strings.Contains(sums, platform.Sha256+"  "+name+"\n") {
			t.Errorf("platform %s: %+v", want, platform)
		}
		for _, file := range platform.Files {
			if !has(t, name, made[name], file.From) {
				t.Errorf("%s has no %s", name, file.From)
			}
		}
	}
}

// has says whether an archive has a file.
func has(t *testing.T, archive string, data []byte, name string) bool {
	t.Helper()
	if strings.HasSuffix(archive, ".zip") {
		files, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			t.Fatal(err)
		}
		_, err = fs.Stat(files, name)
		return err == nil
	}
	cmd := exec.CommandContext(t.Context(), "tar", "-tz")
	cmd.Stdin = bytes.NewReader(data)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Contains(strings.Fields(string(out)), name)
}

func checkCharts(t *testing.T, dist string) {
	t.Helper()
	for _, name := range []string{"jobferry", "jobferry-worker"} {
		packed, err := loader.LoadFile(filepath.Join(dist, name+"-0.9.1-rc.1.tgz"))
		if err != nil {
			t.Fatal(err)
		}
		source, err := loader.LoadDir(filepath.Join(repository, "charts", name))
		if err != nil {
			t.Fatal(err)
		}
		metadata := packed.Metadata
		if metadata.Version != "0.9.1-rc.1" || metadata.AppVersion != "v0.9.1-rc.1" || metadata.Annotations[prereleaseAnnotation] != "true" ||
			!strings.Contains(metadata.Annotations[imagesAnnotation], "/jobferry:v0.9.1-rc.1\n") {
			t.Errorf("%s: %+v", name, metadata)
		}
		if len(packed.Raw) != len(source.Raw) || len(packed.Templates) != len(source.Templates) || len(packed.Schema) == 0 {
			t.Errorf("%s has %d files, of which %d templates; the source has %d, %d", name,
				len(packed.Raw), len(packed.Templates), len(source.Raw), len(source.Templates))
		}
	}
}

// checkPush pushes a release to a registry, and pulls it.
func checkPush(t *testing.T, dist string) {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	at := strings.TrimPrefix(server.URL, "http://") + "/team"
	pushed := command(t, "push", "-dist", dist, "-registry", at)
	refs := strings.Fields(command(t, "refs", "-dist", dist, "-registry", at))
	if len(refs) != 3 {
		t.Fatalf("refs are %v", refs)
	}
	for i, tag := range []string{"jobferry:v0.9.1-rc.1", "charts/jobferry:0.9.1-rc.1", "charts/jobferry-worker:0.9.1-rc.1"} {
		if !strings.Contains(pushed, at+"/"+tag+" is "+refs[i]+"\n") {
			t.Errorf("push doesn't say that %s is %s, but\n%s", tag, refs[i], pushed)
		}
		there, err := remote.Get(reference(t, at+"/"+tag))
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(refs[i], "@"+there.Digest.String()) {
			t.Errorf("%s is %s, not %s", tag, there.Digest, refs[i])
		}
	}
	index, err := remote.Index(reference(t, refs[0]))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(index); err != nil {
		t.Error(err)
	}
	// What isn't as the checksums say isn't pushed.
	if err := os.WriteFile(filepath.Join(dist, "jobferry-0.9.1-rc.1.tgz"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, "isn't as SHA256SUMS says", "push", "-dist", dist, "-registry", at)
}

func refused(t *testing.T, says string, args ...string) {
	t.Helper()
	if err := run(context.WithoutCancel(t.Context()), args, io.Discard); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("%v: %v, want %q", args, err, says)
	}
}

func TestRefusals(t *testing.T) {
	origin := toy(t)
	dist := filepath.Join(t.TempDir(), "dist")
	build := func(version string) []string {
		return []string{"build", "-root", origin, "-dist", dist, "-version", version}
	}
	refused(t, "say what to do")
	refused(t, "say what to do", "sing")
	refused(t, "such as v1.2.3", build("")...)
	refused(t, `CHANGELOG.md says nothing under "## v1.0.0"`, build("v1.0.0")...)
	refused(t, "REGISTRY=", "push", "-dist", dist)
	refused(t, "run make release VERSION=... first", "push", "-dist", dist, "-registry", "localhost:5000")
	if _, err := os.Stat(dist); err == nil {
		t.Error("something was made")
	}
	if err := os.Mkdir(dist, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dist, "older"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, "something else than a whole release, such as older: remove it", build("v0.9.1-rc.1")...)
	if err := os.WriteFile(filepath.Join(origin, "go.mod"), []byte("module x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	refused(t, "commit or remove them\n M go.mod", build("v0.9.1-rc.1")...)
}

func TestKrewManifestNamesOnlyWhatIsReleased(t *testing.T) {
	const text = `{{addURIAndSha "https://example.com/{{ .TagName }}/plugin_{{ .TagName }}.tar.gz" .TagName | indent 2}}`
	made, err := krewManifest(text, "v1.2.3", []statement.File{{Name: "plugin_v1.2.3.tar.gz", Digest: "abc"}})
	if want := "uri: https://example.com/v1.2.3/plugin_v1.2.3.tar.gz\n  sha256: abc"; err != nil || string(made) != want {
		t.Errorf("%q, %v", made, err)
	}
	if _, err := krewManifest(text, "v1.2.4", []statement.File{{Name: "plugin_v1.2.3.tar.gz", Digest: "abc"}}); err == nil || !strings.Contains(err.Error(), "no file plugin_v1.2.4.tar.gz") {
		t.Error(err)
	}
}

func TestSetVersion(t *testing.T) {
	metadata := &chart.Metadata{Version: "0.1.0", AppVersion: "v0.1.0", Annotations: map[string]string{imagesAnnotation: "- image: example.com:5000/jobferry:v0.1.0\n"}}
	setVersion(metadata, checkout.Version("v0.2.0"))
	if metadata.Version != "0.2.0" || metadata.AppVersion != "v0.2.0" || metadata.Annotations[prereleaseAnnotation] != "false" ||
		metadata.Annotations[imagesAnnotation] != "- image: example.com:5000/jobferry:v0.2.0\n" {
		t.Errorf("%+v", metadata)
	}
}

func reference(t *testing.T, text string) name.Reference {
	t.Helper()
	parsed, err := name.ParseReference(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}
