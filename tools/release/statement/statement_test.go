package statement

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

var info = &debug.BuildInfo{
	GoVersion: "go1.26.8",
	Path:      "github.com/jobferry/jobferry/cmd/jobferry-manager",
	Main:      debug.Module{Path: "github.com/jobferry/jobferry", Version: "(devel)"},
	Deps: []*debug.Module{
		{Path: "example.com/one", Version: "v1.2.3+incompatible", Sum: "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="},
		{Path: "example.com/two", Version: "v2.0.0", Replace: &debug.Module{Path: "example.com/fork", Version: "v2.0.1", Sum: "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="}},
	},
}

func TestSBOM(t *testing.T) {
	text, err := SBOM("jobferry-manager", "v0.1.0", []byte("program"), info, time.Unix(0, 0))
	if err != nil {
		t.Fatal(err)
	}
	var bom cyclonedx.BOM
	if err := cyclonedx.NewBOMDecoder(bytes.NewReader(text), cyclonedx.BOMFileFormatJSON).Decode(&bom); err != nil {
		t.Fatal(err)
	}
	const main = "pkg:golang/github.com/jobferry/jobferry@v0.1.0#cmd/jobferry-manager"
	component := bom.Metadata.Component
	if component.PackageURL != main || component.Version != "v0.1.0" || bom.Metadata.Timestamp != "1970-01-01T00:00:00Z" ||
		(*component.Hashes)[0].Value != "1310ca2c8932dbd118668bd97442558a3e1f546b5e15c69699dfbd6024f548d8" {
		t.Errorf("%+v", bom.Metadata)
	}
	want := []string{"pkg:golang/std@1.26.8", "pkg:golang/example.com/one@v1.2.3%2Bincompatible", "pkg:golang/example.com/fork@v2.0.1"}
	for i, component := range *bom.Components {
		if component.PackageURL != want[i] {
			t.Errorf("component %d is %s, want %s", i, component.PackageURL, want[i])
		}
		// The SHA-256 of nothing.
		if i > 0 && (*component.Hashes)[0].Value != "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" {
			t.Errorf("%s has %v", component.Name, *component.Hashes)
		}
	}
	if depends := (*bom.Dependencies)[0]; depends.Ref != main || strings.Join(*depends.Dependencies, " ") != strings.Join(want, " ") {
		t.Errorf("the dependencies are %v", depends)
	}

	again, err := SBOM("jobferry-manager", "v0.1.0", []byte("program"), info, time.Unix(0, 0).In(time.FixedZone("east", 3600)))
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("the same program has another SBOM: %v\n%s", err, again)
	}
	other, err := SBOM("jobferry-manager", "v0.1.0", []byte("other"), info, time.Unix(0, 0))
	if err != nil || bytes.Contains(other, []byte(bom.SerialNumber)) {
		t.Errorf("another program has the same serial number: %v", err)
	}
}

func TestSBOMWithABadSum(t *testing.T) {
	bad := &debug.BuildInfo{Deps: []*debug.Module{{Path: "example.com/one", Version: "v1.0.0", Sum: "h2:abc"}}}
	if _, err := SBOM("x", "v0.1.0", nil, bad, time.Unix(0, 0)); err == nil || !strings.Contains(err.Error(), "example.com/one") {
		t.Error(err)
	}
}

func TestProvenance(t *testing.T) {
	digest := strings.Repeat("ab", 32)
	text, err := Provenance(Build{
		Version: "v0.1.0", Commit: strings.Repeat("c", 40), Go: "1.26.8",
		Files: []File{{"program.tar.gz", digest}}, Artifacts: map[string]string{"jobferry": "sha256:" + digest},
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
  "_type": "https://in-toto.io/Statement/v1",
  "subject": [
    {
      "name": "program.tar.gz",
      "digest": {
        "sha256": "abababababababababababababababababababababababababababababababab"
      }
    },
    {
      "name": "oci:jobferry",
      "digest": {
        "sha256": "abababababababababababababababababababababababababababababababab"
      }
    }
  ],
  "predicateType": "https://slsa.dev/provenance/v1",
  "predicate": {
    "buildDefinition": {
      "buildType": "https://github.com/jobferry/jobferry/blob/v0.1.0/docs/reference/release.md",
      "externalParameters": {
        "command": "make release VERSION=v0.1.0",
        "version": "v0.1.0"
      },
      "resolvedDependencies": [
        {
          "digest": {
            "gitCommit": "cccccccccccccccccccccccccccccccccccccccc"
          },
          "uri": "git+https://github.com/jobferry/jobferry@cccccccccccccccccccccccccccccccccccccccc"
        },
        {
          "name": "go",
          "uri": "pkg:generic/go@1.26.8"
        }
      ]
    },
    "runDetails": {
      "builder": {
        "id": "https://github.com/jobferry/jobferry/tree/v0.1.0/tools/release"
      }
    }
  }
}
`
	if string(text) != want || !json.Valid(text) {
		t.Errorf("%s", text)
	}
}

func TestProvenanceOfNothing(t *testing.T) {
	if _, err := Provenance(Build{Version: "v0.1.0", Commit: strings.Repeat("c", 40)}); err == nil {
		t.Error("a statement about no file")
	}
	if _, err := Provenance(Build{Version: "v0.1.0", Commit: "main", Files: []File{{"a", strings.Repeat("ab", 32)}}}); err == nil {
		t.Error("a statement without a commit")
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func TestSums(t *testing.T) {
	dir := t.TempDir()
	if err := Verify(dir); err == nil || !strings.Contains(err.Error(), "run make release") {
		t.Errorf("without checksums: %v", err)
	}
	write(t, dir, "b", "two\n")
	write(t, dir, "a", "one\n")
	files, err := Files(dir)
	if err != nil {
		t.Fatal(err)
	}
	const want = "2c8b08da5ce60398e1f19af0e5dccc744df274b826abe585eaba68c525434806  a\n27dd8ed44a83ff94d557f9fd0412ed5a8cbca69ea04922d88c01184a07300a5a  b\n"
	if sums := string(Sums(files)); sums != want {
		t.Fatalf("%s", sums)
	}
	write(t, dir, SumsFile, want)
	write(t, dir, SignatureFile, "signed")
	if err := Verify(dir); err != nil {
		t.Error(err)
	}
	for _, step := range []struct {
		change func() error
		says   string
	}{
		{func() error { return os.WriteFile(filepath.Join(dir, "a"), []byte("changed"), 0o644) }, "a isn't as SHA256SUMS says"},
		{func() error { return os.Remove(filepath.Join(dir, "a")) }, "a, which SHA256SUMS lists, isn't there"},
		{func() error { return os.Rename(filepath.Join(dir, "b"), filepath.Join(dir, "c")) }, "c isn't as SHA256SUMS says"},
	} {
		if err := step.change(); err != nil {
			t.Fatal(err)
		}
		if err := Verify(dir); err == nil || !strings.Contains(err.Error(), step.says) {
			t.Errorf("%v, want %q", err, step.says)
		}
	}
}
