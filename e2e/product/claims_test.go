package product

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/jobferry/jobferry/e2e/checkout"
)

// The names in a table of e2e/hostile/README.md.
var (
	quoted = regexp.MustCompile("`([^`]+)`")
	isTest = regexp.MustCompile(`^(Test|Fuzz)[A-Z]\w*$`)
)

// Each claim of e2e/hostile/README.md names tests, and each of them is there: folder `Test`….
func TestEachClaimHasATest(t *testing.T) {
	page, err := os.ReadFile(checkout.Path("e2e", "hostile", "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, tables, _ := strings.Cut(string(page), "## Claims and their tests")
	tables, _, _ = strings.Cut(tables, "\n## ")
	claims := 0
	for line := range strings.Lines(tables) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(cells) != 2 || strings.HasPrefix(cells[0], "--") || strings.TrimSpace(cells[1]) == "tests" {
			continue
		}
		claims++
		folder, tests := "", 0
		for _, match := range quoted.FindAllStringSubmatch(cells[1], -1) {
			switch name := match[1]; {
			case isTest.MatchString(name):
				tests++
				if !hasTest(t, folder, name) {
					t.Errorf("%s has no %s, which is to hold: %s", folder, name, cells[0])
				}
			case strings.Contains(name, "/"):
				folder = name
			}
		}
		if tests == 0 {
			t.Errorf("no test is named for: %s", cells[0])
		}
	}
	if claims < 20 {
		t.Errorf("%d claims were found", claims)
	}
}

// The Makefile names tests and folders that `make test` leaves to other targets: each of them is
// there.
func TestWhatMakeTestLeavesOutIsThere(t *testing.T) {
	makefile, err := os.ReadFile(checkout.Path("Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	names := func(variable string) []string {
		_, value, _ := strings.Cut(string(makefile), "\n"+variable)
		value, _, _ = strings.Cut(value, "\n")
		return strings.Split(strings.Trim(value, " :="), "|")
	}
	for _, folder := range slices.Concat(names("MORE_FOLDERS"), names("CLIENT_FOLDERS")) {
		if tests, _ := filepath.Glob(checkout.Path("e2e", folder, "*_test.go")); len(tests) == 0 {
			t.Errorf("e2e/%s has no tests", folder)
		}
	}
	for _, name := range names("MORE_LENGTH") {
		if !slices.ContainsFunc(names("LENGTH_FOLDERS"), func(folder string) bool { return hasTest(t, "e2e/"+folder, name) }) {
			t.Errorf("none of the folders that make test-more names has %s", name)
		}
	}
}

func hasTest(t *testing.T, folder, name string) bool {
	t.Helper()
	files, err := filepath.Glob(checkout.Path(folder, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(content), "\nfunc "+name+"(") {
			return true
		}
	}
	return false
}
