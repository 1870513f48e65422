package carry

import (
	"strconv"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// TestManyPullSecretsAreCheap: to search the list for each would take ten minutes.
func TestManyPullSecretsAreCheap(t *testing.T) {
	const n = 500_000
	source := &corev1.ServiceAccount{}
	for i := range 2 * n {
		source.ImagePullSecrets = append(source.ImagePullSecrets, corev1.LocalObjectReference{Name: strconv.Itoa(i % n)})
	}
	copied := make(chan *corev1.ServiceAccount, 1)
	go func() {
		object := &corev1.ServiceAccount{}
		setContent(object, source)
		if !sameContent(object, source) {
			object = nil
		}
		copied <- object
	}()
	select {
	case object := <-copied:
		if object == nil || len(object.ImagePullSecrets) != n {
			t.Error("the copy differs from its source")
		}
	case <-time.After(5 * time.Minute): // of what hangs
		t.Fatal(n, "pull secrets take too long")
	}
}
