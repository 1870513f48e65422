package kueue

import (
	"context"
	"errors"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// unreadable is a cache of objects that the manager may not list.
type unreadable struct{ cache.Cache }

func (unreadable) Start(ctx context.Context) error { <-ctx.Done(); return nil }

func (unreadable) WaitForCacheSync(context.Context) bool { return false }

type started struct {
	controller.Controller
	t *testing.T
}

func (s started) Start(context.Context) error { s.t.Error("started"); return nil }

// A session that may not list Kueue's objects starts no controller, and names the missing right.
func TestSessionThatCannotBegin(t *testing.T) {
	s := &session{objects: unreadable{}, controllers: []controller.Controller{started{t: t}}}
	refused := error(apierrors.NewForbidden(schema.GroupResource{Group: "kueue.x-k8s.io", Resource: "workloads"}, "", errors.New("cannot list")))
	s.watchError.Store(&refused)
	if _, err := s.run(t.Context()); !apierrors.IsForbidden(err) || !strings.Contains(err.Error(), "workloads") {
		t.Error(err)
	}
}
