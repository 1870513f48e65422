package jsonscan

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// Unmarshal reads JSON into an empty object of an API type, as an API client does.
func Unmarshal(text []byte, into any) error {
	New(text).reserve(reflect.ValueOf(into))
	return utiljson.Unmarshal(text, into) //nolint:wrapcheck // it's the decoder's own
}

// reserve makes the lists, and the large maps, that the next value will have in a variable: the
// decoder uses what is there.
func (s *Scanner) reserve(v reflect.Value) {
	switch v.Kind() {
	case reflect.Pointer:
		if s.Next() != '{' {
			return
		}
		if v.IsNil() {
			v.Set(reflect.New(v.Type().Elem()))
		}
		s.reserve(v.Elem())
	case reflect.Struct:
		growing := growingFields(v.Type())
		s.Object(func(name []byte) {
			if index, is := growing[string(name)]; is {
				s.reserve(v.FieldByIndex(index))
			}
		})
	case reflect.Map:
		n := 0
		s.Object(func([]byte) { n++ })
		if n > usualMap {
			v.Set(reflect.MakeMapWithSize(v.Type(), n))
		}
	case reflect.Slice:
		n, ahead := 0, *s
		ahead.List(func() { n++ })
		if n > 0 {
			v.Set(reflect.MakeSlice(v.Type(), n, n))
		}
		if !grows(v.Type().Elem()) {
			*s = ahead
			return
		}
		i := 0
		s.List(func() { s.reserve(v.Index(i)); i++ })
	}
}

// usualMap is how many entries a map has room for when it's made.
const usualMap = 8

// growing has the fields of each struct that have lists or maps in them, by their names in JSON.
var growing sync.Map

// growingFields are those of a struct, none of which may have the struct itself in it.
func growingFields(of reflect.Type) map[string][]int {
	if known, ok := growing.Load(of); ok {
		return known.(map[string][]int) //nolint:forcetypeassert // see below
	}
	fields := map[string][]int{}
	for _, f := range reflect.VisibleFields(of) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name != "" && name != "-" && grows(f.Type) {
			fields[name] = f.Index
		}
	}
	growing.Store(of, fields)
	return fields
}

var unmarshaler = reflect.TypeFor[json.Unmarshaler]()

// grows reports whether the decoder makes lists or maps in a value of a type.
func grows(of reflect.Type) bool {
	switch {
	case reflect.PointerTo(of).Implements(unmarshaler):
		return false
	case of.Kind() == reflect.Struct:
		return len(growingFields(of)) > 0
	case of.Kind() == reflect.Pointer:
		return grows(of.Elem())
	default:
		return of.Kind() == reflect.Slice || of.Kind() == reflect.Map
	}
}
