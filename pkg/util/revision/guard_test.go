package revision

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// revisions answers lists with resourceVersions, one after the other; empty: with an error.
type revisions struct {
	client.Reader
	left []string
	end  context.CancelFunc
}

func (r *revisions) List(_ context.Context, list client.ObjectList, _ ...client.ListOption) error {
	if len(r.left) == 0 {
		r.end()
		return errors.New("no more")
	}
	next := r.left[0]
	r.left = r.left[1:]
	if next == "" {
		return errors.New("not now")
	}
	list.(*metav1.PartialObjectMetadataList).ResourceVersion = next
	return nil
}

func TestARestoredClusterEndsTheProcess(t *testing.T) {
	for name, row := range map[string]struct {
		said []string
		ends string
	}{
		"it goes forward":         {[]string{"8", "8", "9", "10"}, ""},
		"back":                    {[]string{"8", "10", "9"}, "was 10, and is 9"},
		"back, after an outage":   {[]string{"10", "", "", "9"}, "was 10, and is 9"},
		"nothing to compare with": {[]string{"", "9", "x", "", "x"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancel(t.Context())
				defer end()
				err := NewGuard(&revisions{left: row.said, end: end}, clock.RealClock{}).Start(ctx)
				if row.ends == "" && err != nil || row.ends != "" && (err == nil || !strings.Contains(err.Error(), row.ends)) {
					t.Errorf("ended with %v", err)
				}
			})
		})
	}
}
