package image

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jobferry/jobferry/e2e/checkout"
)

const (
	digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	newer  = "sha256:fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
)

// pin runs tools/pin-images with a docker that says what the registry has.
func pin(t *testing.T, dockerfile, says string) (string, error) {
	t.Helper()
	dir := t.TempDir()
	docker := "#!/bin/sh\necho '" + says + "'\n"
	if err := os.WriteFile(filepath.Join(dir, "docker"), []byte(docker), 0o755); err != nil { //nolint:gosec // it's a program
		t.Fatal(err)
	}
	file := filepath.Join(dir, "Dockerfile")
	if err := os.WriteFile(file, []byte(dockerfile), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), checkout.Path("tools", "pin-images"), file)
	cmd.Env = append(os.Environ(), "PATH="+dir+":"+os.Getenv("PATH"))
	if out, err := cmd.CombinedOutput(); err != nil {
		return string(out), err
	}
	pinned, err := os.ReadFile(file)
	return string(pinned), err
}

// Each image that our Dockerfile is built from gets its digest, and nothing else changes.
func TestPinImages(t *testing.T) {
	content, err := os.ReadFile(checkout.Path("Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	ours := regexp.MustCompile(`@sha256:[0-9a-f]{64}`).ReplaceAllString(string(content), "")
	pinned, err := pin(t, ours, digest)
	if err != nil {
		t.Fatalf("%v: %s", err, pinned)
	}
	stages, err := Parse(pinned)
	if err != nil {
		t.Fatal(err)
	}
	for _, stage := range stages {
		if stage.Base != Scratch && !strings.HasSuffix(stage.Base, "@"+digest) {
			t.Errorf("FROM %s has no digest", stage.Base)
		}
	}
	if !strings.HasPrefix(pinned, "# syntax=docker/dockerfile:1@"+digest+"\n") {
		t.Errorf("the syntax has no digest: %.100s", pinned)
	}
	if got := strings.ReplaceAll(pinned, "@"+digest, ""); got != ours {
		t.Errorf("something else has changed:\n%s", got)
	}
	if again, err := pin(t, pinned, newer); err != nil || again != strings.ReplaceAll(pinned, digest, newer) {
		t.Errorf("the next digest doesn't replace the former (error %v):\n%s", err, again)
	}
}

// What isn't a digest isn't written, and a stage of the Dockerfile isn't an image.
func TestPinImagesRefusesWhatIsNoDigest(t *testing.T) {
	const two = "FROM --platform=x a.example/go:1.2 AS build\nFROM build AS last\nFROM scratch\n"
	if out, err := pin(t, two, "latest"); err == nil || !strings.Contains(out, "the registry has no digest of a.example/go:1.2") {
		t.Errorf("error %v: %s", err, out)
	}
	want := "FROM --platform=x a.example/go:1.2@" + digest + " AS build\nFROM build AS last\nFROM scratch\n"
	if got, err := pin(t, two, digest); err != nil || got != want {
		t.Errorf("error %v: %s", err, got)
	}
}
