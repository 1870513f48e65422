package upgrade_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/jobferry/jobferry/e2e/checkout"
	"github.com/jobferry/jobferry/e2e/product"
)

// version is a release of Jobferry that can be installed.
type version struct {
	name string
	// program and chart return the files of a program and a chart.
	program, chart func(name string) string
}

// previous is the previous release. The test is skipped if the checkout doesn't have it.
func previous(t *testing.T) version {
	t.Helper()
	release, err := product.Previous(t.Context())
	if errors.Is(err, product.ErrNoHistory) {
		t.Skipf("UPGRADES ARE NOT TESTED: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return version{
		name: "the previous release", program: release.Program,
		chart: func(name string) string { return release.Path("charts", name) },
	}
}

// laterField is a setting that only the CRD of this version has. So the previous release meets a
// CRD that is newer than it, whether or not the two releases differ there.
const laterField = "later"

// present is this checkout.
func present(t *testing.T) version {
	t.Helper()
	charts := t.TempDir()
	if err := os.CopyFS(charts, os.DirFS(checkout.Path("charts"))); err != nil {
		t.Fatal(err)
	}
	crd := filepath.Join(charts, hubChart, "files", "crd", "jobferry.dev_workerclusters.yaml")
	content, err := os.ReadFile(crd)
	if err != nil {
		t.Fatal(err)
	}
	const before = "              carry:\n"
	changed := strings.Replace(string(content), before, "              "+laterField+":\n                type: string\n"+before, 1)
	if changed == string(content) {
		t.Fatalf("%s has no %q", crd, before)
	}
	if err := os.WriteFile(crd, []byte(changed), 0o600); err != nil {
		t.Fatal(err)
	}
	return version{
		name: "this release", chart: func(name string) string { return filepath.Join(charts, name) },
		program: func(name string) string {
			file, err := product.Program(name)
			if err != nil {
				t.Fatal(err)
			}
			return file
		},
	}
}
