package main

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/jobferry/jobferry/tools/release/archive"
	"github.com/jobferry/jobferry/tools/release/checkout"
	"github.com/jobferry/jobferry/tools/release/oci"
	"github.com/jobferry/jobferry/tools/release/statement"
)

// plugin is the program that users have on their own machines.
const plugin = "kubectl-jobferry"

// inClusters are the programs that run in clusters, and that the image has.
var inClusters = []string{"jobferry-manager", "jobferry-worker"}

type platform struct{ os, arch string }

func (p platform) String() string { return p.os + "_" + p.arch }

// platforms are those of the plugin. The programs of clusters are built for those of Linux.
var platforms = []platform{
	{"linux", "amd64"}, {"linux", "arm64"}, {"darwin", "amd64"}, {"darwin", "arm64"}, {"windows", "amd64"}, {"windows", "arm64"},
}

func (p platform) programs() []string {
	if p.os == "linux" {
		return append([]string{plugin}, inClusters...)
	}
	return []string{plugin}
}

// release is one that is being made.
type release struct {
	checkout.Source
	dist string
	log  io.Writer
	// image are the programs of the image, by architecture.
	image map[string][]archive.File
	// goVersion is that of the toolchain which built the programs.
	goVersion string
}

// make makes all files of a release in a folder that has nothing else. The checksums come last: a
// folder without them isn't whole.
func (r *release) make(ctx context.Context) error {
	if err := emptyFolder(r.dist); err != nil {
		return err
	}
	r.image = map[string][]archive.File{}
	for _, platform := range platforms {
		r.say("programs for %s/%s", platform.os, platform.arch)
		if err := r.programs(ctx, platform); err != nil {
			return err
		}
	}
	steps := []struct {
		what string
		do   func() error
	}{
		{"image", r.saveImage},
		{"charts", r.packCharts},
		{"krew's manifest", r.krewManifest},
		{"notes", func() error { return r.write("RELEASE_NOTES.md", []byte(r.Notes)) }},
		{"provenance", r.provenance},
		{"checksums", r.sums},
	}
	for _, step := range steps {
		r.say("%s", step.what)
		if err := step.do(); err != nil {
			return err
		}
	}
	return nil
}

// emptyFolder makes a folder, or removes the whole release that is in it.
func emptyFolder(dir string) error {
	if statement.Verify(dir) == nil {
		if err := os.RemoveAll(dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	entries, err := os.ReadDir(dir)
	if err == nil && len(entries) > 0 {
		return fmt.Errorf("%s has something else than a whole release, such as %s: remove it", dir, entries[0].Name())
	}
	return err
}

func (r *release) say(format string, args ...any) { fmt.Fprintf(r.log, "==> "+format+"\n", args...) }

func (r *release) write(name string, data []byte) error {
	return os.WriteFile(filepath.Join(r.dist, name), data, 0o644)
}

// programs builds the programs of a platform, and writes an archive and an SBOM of each.
func (r *release) programs(ctx context.Context, p platform) error {
	dir, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	cmd := exec.CommandContext(ctx, filepath.Join(r.Root, "tools", "build"), append([]string{dir}, p.programs()...)...)
	// What would change the programs, and be different on another machine.
	cmd.Env = append(os.Environ(), "GOOS="+p.os, "GOARCH="+p.arch, "VERSION="+string(r.Version),
		"GOFLAGS=-mod=readonly", "GOWORK=off", "GOAMD64=v1", "GOARM64=v8.0", "GOEXPERIMENT=", "GODEBUG=", "GOFIPS140=off")
	cmd.Stdout, cmd.Stderr = r.log, r.log
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("tools/build for %s/%s: %w", p.os, p.arch, err)
	}
	for _, name := range p.programs() {
		if err := r.program(dir, name, p); err != nil {
			return err
		}
	}
	return nil
}

func (r *release) program(dir, name string, p platform) error {
	file := name
	if p.os == "windows" {
		file += ".exe"
	}
	data, err := os.ReadFile(filepath.Join(dir, file))
	if err != nil {
		return err
	}
	info, err := buildinfo.Read(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	r.goVersion = strings.TrimPrefix(info.GoVersion, "go")
	binary := archive.File{Name: file, Mode: 0o755, Data: data}
	if p.os == "linux" && name != plugin {
		r.image[p.arch] = append(r.image[p.arch], binary)
	}
	sbom, err := statement.SBOM(name, string(r.Version), data, info, r.Time)
	if err != nil {
		return err
	}
	if err := r.write(fmt.Sprintf("%s_%s_%s.cdx.json", name, r.Version, p), sbom); err != nil {
		return err
	}
	return r.archive(name, p, binary)
}

// archive writes the archive of a program: with the licence, and with what completes the plugin's
// command line in a shell of Unix.
func (r *release) archive(name string, p platform, binary archive.File) error {
	more := map[string]os.FileMode{"LICENSE": 0o644}
	if name == plugin && p.os != "windows" {
		more["cmd/kubectl-jobferry/kubectl_complete-jobferry"] = 0o755
	}
	files := []archive.File{binary}
	for path, mode := range more {
		data, err := os.ReadFile(filepath.Join(r.Root, path))
		if err != nil {
			return err
		}
		files = append(files, archive.File{Name: filepath.Base(path), Mode: mode, Data: data})
	}
	pack := archive.TarGzip
	if p.os == "windows" {
		pack = archive.Zip
	}
	data, err := pack(files, r.Time)
	if err != nil {
		return err
	}
	return r.write(archiveName(name, r.Version, p), data)
}

func archiveName(program string, version checkout.Version, p platform) string {
	extension := "tar.gz"
	if p.os == "windows" {
		extension = "zip"
	}
	return fmt.Sprintf("%s_%s_%s.%s", program, version, p, extension)
}

// imageSuffix is how the file of the image ends.
const imageSuffix = "_image.oci.tar"

func (r *release) saveImage() error {
	image := oci.Image{Created: r.Time, Programs: r.image, Labels: map[string]string{
		"org.opencontainers.image.title":       "jobferry",
		"org.opencontainers.image.description": "Jobferry dispatches the Jobs of a hub cluster to worker clusters",
		"org.opencontainers.image.source":      "https://github.com/jobferry/jobferry",
		"org.opencontainers.image.licenses":    "Apache-2.0",
		"org.opencontainers.image.version":     string(r.Version),
		"org.opencontainers.image.revision":    r.Commit,
		oci.CreatedAnnotation:                  r.Time.Format(time.RFC3339),
	}}
	index, err := image.Index()
	if err != nil {
		return err
	}
	return oci.Save(filepath.Join(r.dist, "jobferry_"+string(r.Version)+imageSuffix), index, "jobferry", string(r.Version), r.Time)
}

func (r *release) provenance() error {
	scratch, err := os.MkdirTemp("", "release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)
	artifacts, err := readArtifacts(r.dist, scratch)
	if err != nil {
		return err
	}
	digests := map[string]string{}
	for _, artifact := range artifacts {
		digest, err := artifact.Content.Digest()
		if err != nil {
			return err
		}
		digests[artifact.Repository] = digest.String()
	}
	files, err := statement.Files(r.dist)
	if err != nil {
		return err
	}
	text, err := statement.Provenance(statement.Build{
		Version: string(r.Version), Commit: r.Commit, Go: r.goVersion, Files: files, Artifacts: digests,
	})
	if err != nil {
		return err
	}
	return r.write("provenance.intoto.json", text)
}

func (r *release) sums() error {
	files, err := statement.Files(r.dist)
	if err != nil {
		return err
	}
	return r.write(statement.SumsFile, statement.Sums(files))
}
