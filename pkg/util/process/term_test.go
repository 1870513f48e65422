package process

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/tools/leaderelection/resourcelock"
)

// sent notes which requests get through.
type sent []string

// RoundTrip implements http.RoundTripper.
func (s *sent) RoundTrip(r *http.Request) (*http.Response, error) {
	*s = append(*s, r.Method)
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}

// A leader that was stopped for longer than its Lease, and goes on, writes nothing: another one may
// lead. It still reads. What never led may write, such as the reviews of a standby.
func TestALeaderThatWasStoppedWritesNothing(t *testing.T) {
	s := newStandby(t, leaseOf("", noon))
	var through sent
	guard := s.term.guard(&through)
	try := func(method string) error {
		r, err := http.NewRequestWithContext(t.Context(), method, "https://hub/apis/batch/v1/jobs/status", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := guard.RoundTrip(r)
		if err == nil {
			_ = resp.Body.Close() // it's empty
		}
		return err
	}
	renew := func() {
		record := resourcelock.LeaderElectionRecord{HolderIdentity: "me", LeaseDurationSeconds: 15}
		if _, _, err := s.Get(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := s.Update(t.Context(), record); err != nil {
			t.Fatal(err)
		}
	}
	for _, row := range []struct {
		name  string
		after time.Duration
		renew bool
		over  bool
	}{
		{name: "before it leads"},
		{name: "it leads", after: time.Hour, renew: true},
		{name: "shortly before the end of its Lease", after: 14 * time.Second},
		{name: "it was stopped for longer", after: time.Second, over: true},
		{name: "it has renewed its Lease all the same", renew: true},
	} {
		s.clock.Step(row.after)
		if row.renew {
			renew()
		}
		if err := try(http.MethodPatch); errors.Is(err, errTermOver) != row.over || (err != nil) != row.over {
			t.Errorf("%s: %v", row.name, err)
		}
		if err := try(http.MethodGet); err != nil {
			t.Errorf("%s: a read: %v", row.name, err)
		}
	}
	if got := strings.Join(through, " "); strings.Count(got, http.MethodPatch) != 4 {
		t.Errorf("%s got through", got)
	}
}
