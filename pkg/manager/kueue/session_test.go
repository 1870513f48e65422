package kueue

import (
	"context"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// unreadable is a cache of objects that may not be listed.
type unreadable struct{ cache.Cache }

func (unreadable) Start(ctx context.Context) error { <-ctx.Done(); return nil }

func (unreadable) WaitForCacheSync(context.Context) bool { return false }

type started struct {
	controller.Controller
	t *testing.T
}

func (s started) Start(context.Context) error { s.t.Error("started"); return nil }

// A session that can't read Kueue's objects listens to nothing else.
func TestSessionThatCannotBegin(t *testing.T) {
	s := &session{objects: unreadable{}, controllers: []controller.Controller{started{t: t}}}
	if _, err := s.run(t.Context()); err == nil || !strings.Contains(err.Error(), "permissions") {
		t.Error(err)
	}
}
