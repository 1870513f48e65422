package archive

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/jobferry/jobferry/pkg/util/costtest"
	"github.com/jobferry/jobferry/pkg/util/digest"
)

// The directories of members with long names are counted, not held by name.
func TestNamesOfDirectoriesArentHeld(t *testing.T) {
	const members, most = 5000, 4 << 20 // by name: 20 MB
	made, before := map[digest.Digest]struct{}{}, costtest.Heap()
	for i := range members {
		if !makes(made, fmt.Sprintf("%s/%d/file", strings.Repeat("d", maxName-20), i), members+1) {
			t.Fatal("too many directories")
		}
	}
	if held := costtest.Heap() - before; held > most || len(made) != members+1 {
		t.Errorf("%d directories are held in %d KiB", len(made), held>>10)
	}
	runtime.KeepAlive(made)
}
