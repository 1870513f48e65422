// Package pages reads lists page by page, in pages that are bounded by bytes.
package pages

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// shrinks is by what the limit is divided when a page is too large.
const shrinks = 8

// Read reads a page with the options' limit. A page that is too large is read again with fewer
// objects, as are those after it. An error remains when one object alone is too large.
func Read[P any](
	ctx context.Context, options *metav1.ListOptions, isTooLarge func(error) bool,
	list func(context.Context, metav1.ListOptions) (P, error),
) (P, error) {
	for {
		page, err := list(ctx, *options)
		if err == nil || options.Limit <= 1 || !isTooLarge(err) {
			return page, err
		}
		options.Limit = max(options.Limit/shrinks, 1)
	}
}
