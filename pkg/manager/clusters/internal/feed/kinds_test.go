package feed

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
	"github.com/jobferry/jobferry/pkg/placement"
)

// TestRulesTakeLittleMemory has a worker report many of each kind that are large only when they're
// decoded, and some with long names.
func TestRulesTakeLittleMemory(t *testing.T) {
	l, err := link.New(link.Options{})
	if err != nil {
		t.Fatal(err)
	}
	all, store := &gathering{link: l}, placement.NewStore(func(placement.Change) {})
	for _, k := range slices.Concat(all.others(store), all.namespaces(store), all.volumes(store)) {
		made := wideObjects[k.resource]
		if made == nil {
			t.Errorf("no objects of %s", k.resource)
			continue
		}
		t.Run(k.resource, func(t *testing.T) {
			into := k.intake()
			most, limit := into.limit()
			taken, bytes, err := takeAll(into, 20_000, func(i int) object { return made(i, metav1.ObjectMeta{Name: fmt.Sprint("o", i)}) })
			t.Logf("%d are held in %d KiB", len(taken), bytes>>10)
			if excess := (*excessError)(nil); !errors.As(err, &excess) || len(taken) > most || bytes > limit*5/4 {
				t.Errorf("%d are held in %d bytes: %v", len(taken), bytes, err)
			}
			long := metav1.ObjectMeta{Name: strings.Repeat("x", 1_000_000)}
			if o, err := into.take(made(0, long)); o != nil || err != nil {
				t.Errorf("a name that no API server stores is held: %t, %v", o != nil, err)
			}
		})
	}
}
