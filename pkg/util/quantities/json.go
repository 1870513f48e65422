package quantities

import (
	"encoding/json"
	"reflect"
	"strings"

	"github.com/jobferry/jobferry/pkg/util/jsonscan"
)

// HasCostlyJSON reports whether JSON has a costly quantity, where a type has quantities. Without a
// type, each text that looks like one counts. Nothing decodes what isn't JSON.
func HasCostlyJSON(text []byte, of reflect.Type) bool {
	if !MayHaveCostly(text) || !json.Valid(text) { // what is valid isn't nested deeply
		return false
	}
	s := jsonscan.New(text)
	if of != nil {
		return hasCostly(s, of)
	}
	costly := false
	s.Scalars(func(value []byte) {
		text := string(jsonscan.Unquoted(value))
		isNumber := strings.Trim(strings.TrimSpace(text), "+-0123456789.eEinumkKMGTP") == ""
		costly = costly || isNumber && IsCostly(text)
	})
	return costly
}

// hasCostly passes the next value. It is that of a type, or nil for one without quantities. Of
// names that are there twice, both are decoded.
func hasCostly(s *jsonscan.Scanner, of reflect.Type) (costly bool) {
	switch first := s.Next(); {
	case of == nil: // however deep it is
		s.Skip()
	case first == '{':
		s.Object(func(name []byte) { costly = hasCostly(s, memberOf(of, string(name))) || costly })
	case first == '[':
		s.List(func() { costly = hasCostly(s, elementOf(of)) || costly })
	default:
		costly = of == Type && IsCostly(string(jsonscan.Unquoted(s.Skip())))
	}
	return costly
}

// memberOf is the type of a member of an object; nil: it has none.
func memberOf(of reflect.Type, name string) reflect.Type {
	if of.Kind() == reflect.Struct {
		return jsonFieldOf(of, name)
	}
	return elementOf(of)
}

// elementOf is the type of a list's or map's elements; nil: it has none.
func elementOf(of reflect.Type) reflect.Type {
	if of.Kind() != reflect.Slice && of.Kind() != reflect.Map {
		return nil
	}
	return withoutPointer(of.Elem())
}

func withoutPointer(of reflect.Type) reflect.Type {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	return of
}

// jsonFieldOf is the type of a struct's field by its name in JSON; nil: it has none.
func jsonFieldOf(of reflect.Type, name string) reflect.Type {
	for i := range of.NumField() {
		f := of.Field(i)
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		field := withoutPointer(f.Type)
		switch {
		case tag != "" && strings.EqualFold(tag, name): // as encoding/json does
			return field
		case tag == "" && f.Anonymous && field.Kind() == reflect.Struct:
			if found := jsonFieldOf(field, name); found != nil {
				return found
			}
		}
	}
	return nil
}
