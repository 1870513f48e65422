package rig_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/jobferry/jobferry/e2e/rig/binaries"
	"github.com/jobferry/jobferry/e2e/rig/clock"
	"github.com/jobferry/jobferry/e2e/rig/rigtest"
)

// A cluster whose clock is behind says so in its objects, also after a restart, until the clock is
// set right.
func TestClockOfAComponent(t *testing.T) {
	f := rigtest.For(t)
	c := f.Cluster("bare")
	server := c.Component(binaries.APIServer)
	if err := server.SetClock(-time.Hour / 2); !clock.Supported {
		if err == nil {
			t.Error("no error where clocks can't be set")
		}
		return
	} else if err != nil {
		t.Fatal(err)
	}
	expectAge(t, f, 30*time.Minute)
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	if err := c.Ready(f.Context()); err != nil {
		t.Fatal(err)
	}
	expectAge(t, f, 30*time.Minute)
	if err := server.SetClock(0); err != nil {
		t.Fatal(err)
	}
	expectAge(t, f, 0)
}

// expectAge checks how old an object is right after its creation.
func expectAge(t *testing.T, f *rigtest.Fixture, want time.Duration) {
	t.Helper()
	maps := f.Cluster("bare").Client().CoreV1().ConfigMaps(metav1.NamespaceDefault)
	made, err := maps.Create(f.Context(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{GenerateName: "age-"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if age := time.Since(made.CreationTimestamp.Time); age < want-10*time.Second || age > want+30*time.Second {
		t.Errorf("the object is %s old, want %s", age, want)
	}
}
