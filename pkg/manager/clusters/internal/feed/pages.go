package feed

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/jobferry/jobferry/pkg/api/v1alpha1"
	"github.com/jobferry/jobferry/pkg/manager/clusters/internal/link"
	"github.com/jobferry/jobferry/pkg/util/digest"
	"github.com/jobferry/jobferry/pkg/util/objectnames"
	"github.com/jobferry/jobferry/pkg/util/pages"
)

// maxNotHeld bounds the objects of a list that aren't held. They take time, but no memory, so it's
// above all Pods that Kubernetes supports in a cluster; those that are held have the intake's
// bound.
const maxNotHeld = 200_000

// listAll reads a list page by page, and takes in each page before it asks for the next: what is
// held at a time is slim objects and one page. A page of large objects is asked for again with
// fewer; the bound is broken when one object alone does that. It's broken, too, by a list that has
// no end: it has an object twice, or too many that aren't held.
func listAll(
	ctx context.Context, options metav1.ListOptions, into *intake,
	list func(context.Context, metav1.ListOptions) (runtime.Object, error),
) (runtime.Object, error) {
	into.clear()
	all := &listed{intake: into, names: map[digest.Digest]struct{}{}}
	version, err := pages.All(ctx, options, isBroken, func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
		page, err := list(ctx, options)
		if err == nil {
			err = checkPage(page)
		}
		return page, err
	}, all.add)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what failed
	}
	into.complete()
	all.ResourceVersion = version
	return &all.List, nil
}

// maxToken bounds what a page says of the next one.
const maxToken = 4 << 10

// checkPage bounds what becomes part of the next request.
func checkPage(page runtime.Object) error {
	of, is := page.(metav1.ListInterface)
	switch {
	case !is:
		return nil
	case len(of.GetContinue()) > maxToken:
		return neverSent("a token for the next page of %d bytes", len(of.GetContinue()))
	default:
		return checkVersion(of.GetResourceVersion())
	}
}

// checkVersion bounds a version, which is remembered, and sent again.
func checkVersion(version string) error {
	if len(version) > objectnames.MaxVersion {
		return neverSent("a resourceVersion of %d bytes", len(version))
	}
	return nil
}

func neverSent(format string, arg any) *link.BoundError {
	return &link.BoundError{Reason: v1alpha1.ReasonAnswerTooLarge, Message: fmt.Sprintf(
		"an answer has "+format+", which no API server sends: check what answers at the kubeconfig's server", arg)}
}

func isBroken(err error) bool {
	var broken *link.BoundError
	return errors.As(err, &broken)
}

// listed is what has been read of a list.
type listed struct {
	internalversion.List
	intake *intake
	// names are those of the objects that are held. They can't be taken from the intake: a watch
	// that is ending may still add to that.
	names map[digest.Digest]struct{}
	read  int
}

func (l *listed) add(item runtime.Object) error {
	l.read++
	o, err := l.intake.take(item)
	if err != nil {
		return err
	}
	if o == nil {
		if l.read-len(l.Items) > maxNotHeld {
			return endless("it has more than %d objects that aren't the hub's", maxNotHeld)
		}
		return nil
	}
	name := digest.Of(nameOf(o))
	if _, twice := l.names[name]; twice {
		return endless("it has %.300q twice", nameOf(o))
	}
	l.names[name] = struct{}{}
	packed, err := l.intake.packed(o)
	if err != nil {
		return err
	}
	l.Items = append(l.Items, packed)
	return nil
}

func endless(format string, arg any) *link.BoundError {
	return &link.BoundError{Reason: v1alpha1.ReasonAnswerTooLarge, Message: fmt.Sprintf(
		"the answer to a list seems to have no end: "+format+": check what answers at the kubeconfig's server", arg)}
}
