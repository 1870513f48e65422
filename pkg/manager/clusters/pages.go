package clusters

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// pageSize is how many objects are asked for at once, and pageShrinks by what that is divided when
// the page is too large.
const (
	pageSize    = 500
	pageShrinks = 8
)

// listAll reads a list page by page, and transforms each page before it asks for the next: what is
// held at a time is small objects and one page. A page of large objects is asked for again with
// fewer; the bound is broken when one object alone does that.
func listAll(
	options metav1.ListOptions, transform cache.TransformFunc, list func(metav1.ListOptions) (runtime.Object, error),
) (runtime.Object, error) {
	// API servers before 1.31 heed the limit only in a list without a resource version.
	options.ResourceVersion, options.ResourceVersionMatch, options.Limit = "", "", pageSize
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
		before := len(all.Items)
		err = meta.EachListItemWithAlloc(page, func(item runtime.Object) error {
			slim, err := transform(item)
			if object, ok := slim.(runtime.Object); ok && err == nil {
				all.Items = append(all.Items, object)
			}
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read the answer to a list: %w", err)
		}
		all.ResourceVersion, options.Continue = about.GetResourceVersion(), about.GetContinue()
		switch {
		case options.Continue == "":
			return all, nil
		case len(all.Items) == before:
			return nil, errors.New("the answer to a list is an empty page, after which there are more")
		}
	}
}
