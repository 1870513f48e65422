package show

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

var update = flag.Bool("update", false, "write the golden files anew")

// now is when all is rendered.
var now = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// before is a time that long ago.
func before(d time.Duration) metav1.Time { return metav1.NewTime(now.Add(-d)) }

// golden holds a text against testdata/NAME.golden.
func golden(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".golden")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got; -update writes it):\n%s", file, diff)
	}
}

func render(t *testing.T, table Table) string {
	t.Helper()
	var b strings.Builder
	if err := table.Write(&b, nil); err != nil {
		t.Fatal(err)
	}
	return b.String()
}
