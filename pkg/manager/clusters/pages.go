package clusters

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// pageSize is how many objects are asked for at once, and pageShrinks by what that is divided when
// the page is too large.
const (
	pageSize    = 500
	pageShrinks = 8
)

// listAll reads a list page by page, and takes in each page before it asks for the next: what is
// held at a time is slim objects and one page. A page of large objects is asked for again with
// fewer; the bound is broken when one object alone does that.
func listAll(
	options metav1.ListOptions, into *intake, list func(metav1.ListOptions) (runtime.Object, error),
) (runtime.Object, error) {
	// API servers before 1.31 heed the limit only in a list without a resource version.
	options.ResourceVersion, options.ResourceVersionMatch, options.Limit = "", "", pageSize
	into.clear()
	all := &internalversion.List{}
	for {
		page, err := list(options)
		if broken := (*BoundError)(nil); errors.As(err, &broken) && options.Limit > 1 {
			options.Limit = max(options.Limit/pageShrinks, 1)
			continue
		}
		if err != nil {
			return nil, err
		}
		about, err := meta.ListAccessor(page)
		if err != nil {
			return nil, fmt.Errorf("read the answer to a list: %w", err)
		}
		read := 0
		err = meta.EachListItemWithAlloc(page, func(item runtime.Object) error {
			read++
			o, err := into.take(item)
			if o != nil {
				all.Items = append(all.Items, o)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read the answer to a list: %w", err)
		}
		all.ResourceVersion, options.Continue = about.GetResourceVersion(), about.GetContinue()
		switch {
		case options.Continue == "":
			into.complete()
			return all, nil
		case read == 0:
			return nil, errors.New("the answer to a list is an empty page, after which there are more")
		}
	}
}
