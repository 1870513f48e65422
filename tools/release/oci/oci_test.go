package oci

import (
	"archive/tar"
	"bytes"
	"crypto/x509"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/validate"
	"helm.sh/helm/v3/pkg/chart"

	"github.com/jobferry/jobferry/tools/release/archive"
)

var commit = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func index(t *testing.T) v1.ImageIndex {
	t.Helper()
	image := Image{Created: commit, Labels: map[string]string{"org.opencontainers.image.version": "v0.1.0"}, Programs: map[string][]archive.File{}}
	for _, architecture := range []string{"amd64", "arm64"} {
		image.Programs[architecture] = []archive.File{
			{Name: "jobferry-manager", Mode: 0o755, Data: []byte("manager of " + architecture)},
			{Name: "jobferry-worker", Mode: 0o755, Data: []byte("worker of " + architecture)},
		}
	}
	index, err := image.Index()
	if err != nil {
		t.Fatal(err)
	}
	return index
}

func digestOf(t *testing.T, artifact interface{ Digest() (v1.Hash, error) }) v1.Hash {
	t.Helper()
	digest, err := artifact.Digest()
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func TestImage(t *testing.T) {
	index := index(t)
	manifest, err := index.IndexManifest()
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Annotations["org.opencontainers.image.version"] != "v0.1.0" || len(manifest.Manifests) != 2 {
		t.Errorf("the index is %+v", manifest)
	}
	for i, architecture := range []string{"amd64", "arm64"} {
		if platform := manifest.Manifests[i].Platform; platform.String() != "linux/"+architecture {
			t.Errorf("image %d is for %s", i, platform)
		}
		image, err := index.Image(manifest.Manifests[i].Digest)
		if err != nil {
			t.Fatal(err)
		}
		config, err := image.ConfigFile()
		if err != nil {
			t.Fatal(err)
		}
		if config.Architecture != architecture || config.OS != "linux" || !config.Created.Equal(commit) ||
			config.Config.User != user || config.Config.Entrypoint[0] != entrypoint || len(config.History) != 2 {
			t.Errorf("%s: %+v", architecture, config)
		}
		files := filesOf(t, image)
		if files["jobferry-manager"] != "manager of "+architecture || files["jobferry-worker"] != "worker of "+architecture || len(files) != 3 {
			t.Errorf("%s has the files %v", architecture, files)
		}
		certificates := strings.Count(files[rootsFile], "-----BEGIN CERTIFICATE-----")
		if !x509.NewCertPool().AppendCertsFromPEM([]byte(files[rootsFile])) || certificates < 100 {
			t.Errorf("%s: %d root certificates", architecture, certificates)
		}
	}
}

// filesOf are the files of an image, which must be root's, and as old as the commit.
func filesOf(t *testing.T, image v1.Image) map[string]string {
	t.Helper()
	content := mutate.Extract(image)
	defer content.Close()
	files := map[string]string{}
	for all := tar.NewReader(content); ; {
		header, err := all.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if !header.ModTime.Equal(commit) || header.Uid != 0 || header.Gid != 0 {
			t.Errorf("%s is of %v, %d:%d", header.Name, header.ModTime, header.Uid, header.Gid)
		}
		data, err := io.ReadAll(all)
		if err != nil {
			t.Fatal(err)
		}
		files[header.Name] = string(data)
	}
}

// The Dockerfile and this package make the same image.
func TestTheDockerfileAgrees(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	_, last, found := strings.Cut(string(text), "\nFROM scratch\n")
	if !found {
		t.Fatal("the Dockerfile's last stage isn't FROM scratch")
	}
	var instructions []string
	for line := range strings.Lines(last) {
		if !strings.HasPrefix(line, "#") {
			instructions = append(instructions, strings.TrimSpace(line))
		}
	}
	want := []string{
		"COPY --from=build /" + rootsFile + " /etc/ssl/certs/",
		"COPY --from=build /out/ /",
		"USER " + user,
		`ENTRYPOINT ["` + entrypoint + `"]`,
	}
	if strings.Join(instructions, "\n") != strings.Join(want, "\n") {
		t.Errorf("the Dockerfile's last stage is\n%s\nwant\n%s", strings.Join(instructions, "\n"), strings.Join(want, "\n"))
	}
	if !strings.Contains(string(text), "tools/build /out jobferry-manager jobferry-worker\n") {
		t.Error("the Dockerfile builds other programs than the release's image has")
	}
}

// What's saved in two folders is the same, byte for byte, and loading gives the image again.
func TestSaveAndLoad(t *testing.T) {
	image := index(t)
	var saved [][]byte
	for range 2 {
		file := filepath.Join(t.TempDir(), "image.tar")
		if err := Save(file, image, "jobferry", "v0.1.0", commit); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		saved = append(saved, data)
		loaded, tag, err := Load(file, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := validate.Index(loaded); err != nil {
			t.Error(err)
		}
		if digestOf(t, loaded) != digestOf(t, image) || tag != "v0.1.0" {
			t.Errorf("loaded %s, tag %q", digestOf(t, loaded), tag)
		}
	}
	if !bytes.Equal(saved[0], saved[1]) {
		t.Error("the layouts differ")
	}
}

// An archive can't write outside of the folder that it's unpacked into.
func TestLoadStaysInItsFolder(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"../outside", "/outside", "blobs/../../outside"} {
		var hostile bytes.Buffer
		if err := archive.Tar(&hostile, []archive.File{{Name: name, Data: []byte("x")}}, commit); err != nil {
			t.Fatal(err)
		}
		file, folder := filepath.Join(dir, "hostile.tar"), filepath.Join(dir, "folder")
		if err := os.WriteFile(file, hostile.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			t.Fatal(err)
		}
		if _, _, err := Load(file, folder); err == nil || !strings.Contains(err.Error(), "escapes") {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := os.Stat(filepath.Join(dir, "outside")); err == nil {
			t.Errorf("%s was written", name)
		}
	}
}

// local is a registry on this machine.
func local(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	return strings.TrimPrefix(server.URL, "http://")
}

func artifacts(t *testing.T) []Artifact {
	t.Helper()
	artifact, err := Chart(&chart.Metadata{APIVersion: "v2", Name: "jobferry", Version: "0.1.0"}, []byte("packed"), "2026-03-01T12:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	return []Artifact{{Repository: "jobferry", Tag: "v0.1.0", Content: index(t)}, {Repository: "charts/jobferry", Tag: "0.1.0", Content: artifact}}
}

func TestPushAndPull(t *testing.T) {
	at := local(t) + "/team/mirror"
	for _, artifact := range artifacts(t) {
		for range 2 { // the second time, it's there already
			digest, err := Push(t.Context(), at, artifact)
			if err != nil {
				t.Fatal(err)
			}
			if want := at + "/" + artifact.Repository + "@" + digestOf(t, artifact.Content).String(); digest.String() != want {
				t.Errorf("pushed %s, want %s", digest, want)
			}
		}
	}
	pulled, err := remote.Index(reference(t, at+"/jobferry:v0.1.0"))
	if err != nil {
		t.Fatal(err)
	}
	if err := validate.Index(pulled); err != nil {
		t.Error(err)
	}
	if got, want := digestOf(t, pulled), digestOf(t, index(t)); got != want {
		t.Errorf("pulled %s, want %s", got, want)
	}
	packed, err := remote.Image(reference(t, at+"/charts/jobferry:0.1.0"))
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := packed.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	config, err := packed.RawConfigFile()
	if err != nil {
		t.Fatal(err)
	}
	layers, err := packed.Layers()
	if err != nil {
		t.Fatal(err)
	}
	content, err := layers[0].Compressed()
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	if manifest.Config.MediaType != chartConfig || manifest.Layers[0].MediaType != chartContent || string(data) != "packed" ||
		string(config) != `{"name":"jobferry","version":"0.1.0","apiVersion":"v2"}` {
		t.Errorf("%+v %s %q", manifest, config, data)
	}
}

// A tag of a release is written once.
func TestPushReplacesNothing(t *testing.T) {
	at := local(t)
	other, err := random.Index(10, 1, 1)
	if err != nil {
		t.Fatal(err)
	}
	taken := Artifact{Repository: "jobferry", Tag: "v0.1.0", Content: other}
	if _, err := Push(t.Context(), at, taken); err != nil {
		t.Fatal(err)
	}
	if _, err := Push(t.Context(), at, artifacts(t)[0]); err == nil || !strings.Contains(err.Error(), "a release never changes") {
		t.Error(err)
	}
	there, err := remote.Head(reference(t, at+"/jobferry:v0.1.0"))
	if err != nil || there.Digest != digestOf(t, other) {
		t.Errorf("now it's %v (%v)", there, err)
	}
}

func TestPushElsewhere(t *testing.T) {
	refuses := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer refuses.Close()
	for registry, says := range map[string]string{
		"https://ghcr.io/jobferry":                 "REGISTRY=https://ghcr.io/jobferry is no registry such as",
		strings.TrimPrefix(refuses.URL, "http://"): "403 Forbidden",
	} {
		if _, err := Push(t.Context(), registry, artifacts(t)[0]); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", registry, err)
		}
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
