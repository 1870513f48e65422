package inject

import (
	"testing"

	"github.com/jobferry/jobferry/e2e/chaos/schedule"
)

// Whatever is drawn can be carried out.
func TestEachKindIsKnown(t *testing.T) {
	for _, kind := range schedule.Kinds() {
		if table[kind] == nil {
			t.Errorf("nobody knows how to %s", kind)
		}
	}
	if len(table) != len(schedule.Kinds()) {
		t.Errorf("%d kinds are known, %d drawn", len(table), len(schedule.Kinds()))
	}
}
