package feed

import (
	"fmt"
	"slices"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"github.com/jobferry/jobferry/pkg/manager/packed"
)

func TestEventsOfMirrors(t *testing.T) {
	mirror, err := packed.Pack(&batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "j"}})
	if err != nil {
		t.Fatal(err)
	}
	var told []string
	handler := mirrorHandler(mirrorCallbacks{changed: func(key types.NamespacedName, exists bool) {
		told = append(told, fmt.Sprint(key, exists))
	}})
	handler.OnAdd(mirror, true)
	handler.OnUpdate(mirror, mirror)
	handler.OnDelete(mirror)
	handler.OnDelete(cache.DeletedFinalStateUnknown{Key: "team/j"})
	if want := []string{"team/j true", "team/j true", "team/j false", "team/j false"}; !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}
