; Columns in, verdict out: Knossos' search in the calling thread, without what makes it unsafe to call.
(ns wrackline.knossos
  (:require [knossos.history :as history]
            [knossos.model :as model]
            [knossos.model.memo :as memo]
            [knossos.op :as op]
            [knossos.wgl :as wgl]
            [multiset.core :as multiset])
  (:import (clojure.lang PersistentQueue)
           (knossos.model CASRegister Model MultiRegister Mutex Register)
           (knossos.wgl CacheConfig)))

; Knossos' own FIFO queue cannot dequeue what nobody saw, nor say that it is empty.
(defrecord Fifo [pending]
  Model
  (step [this op]
    (let [value (:value op)]
      (condp = (:f op)
        :enqueue (Fifo. (conj pending value))
        :dequeue (cond (nil? value)            (Fifo. (pop pending))
                       (= :empty value)        (if (empty? pending) this (model/inconsistent "not empty"))
                       (= value (peek pending)) (Fifo. (pop pending))
                       :else                   (model/inconsistent (str "can't dequeue " value)))))))

; The same for its unordered queue. A dequeue of unknown outcome takes any value: it is not modelled, and refused.
(defrecord Bag [pending]
  Model
  (step [this op]
    (let [value (:value op)]
      (condp = (:f op)
        :enqueue (Bag. (conj pending value))
        :dequeue (cond (= :empty value)            (if (empty? pending) this (model/inconsistent "not empty"))
                       (contains? pending value)   (Bag. (disj pending value))
                       :else                       (model/inconsistent (str "can't dequeue " value)))))))

; A set whose read of unknown outcome says nothing.
(defrecord Elements [there]
  Model
  (step [this op]
    (condp = (:f op)
      :add  (Elements. (conj there (:value op)))
      :read (if (or (nil? (:value op)) (= there (:value op)))
              this
              (model/inconsistent "another set was read")))))

;; Logs with offsets. An append's value is [value offset-or-nil], a read's {:covered [from to] :records [[offset value
;; foreign?] ..]}, an end's the offset that was told.

(defn whole?
  "Does the read have a record at every offset of the range that it covered?"
  [{[from to] :covered records :records}]
  (every? (into #{} (map first) records) (range from to)))

; All that was done to a log: the next append is at its end.
(defrecord Log [start values]
  Model
  (step [this op]
    (let [value (:value op)
          end (+ start (count values))]
      (condp = (:f op)
        :append (let [[what offset] value]
                  (if (or (nil? offset) (= offset end))
                    (Log. start (conj values what))
                    (model/inconsistent (str "the next offset is " end))))
        :read   (if (and (<= (second (:covered value)) end)
                         (whole? value)
                         (every? (fn [[offset what]] (= what (get values (- offset start)))) (:records value)))
                  this
                  (model/inconsistent "other records are there"))
        :end    (if (= value end) this (model/inconsistent (str "the end is " end)))))))

(defn shown
  "Contents after a record was shown: the same where it was known; nil where it cannot be there. What nobody here
  appended was put there by others, before."
  [contents [offset what foreign?]]
  (cond (= what (contents offset))                        contents
        (or (not foreign?) (contents offset))             nil
        (some (fn [[_ there]] (= there what)) contents)   nil
        :else                                             (assoc contents offset what)))

; Some of what was done to a log: what is between is others'. An append whose place nobody was told leaves no trace.
(defrecord SomeOfLog [end contents]
  Model
  (step [this op]
    (let [value (:value op)]
      (condp = (:f op)
        :append (let [[what offset] value]
                  (cond (nil? offset)  this
                        (< offset end) (model/inconsistent (str "the next offset is at least " end))
                        :else          (SomeOfLog. (inc offset) (assoc contents offset what))))
        :read   (let [after (reduce (fn [there record] (or (shown there record) (reduced nil)))
                                    contents (:records value))]
                  (if (and after (whole? value))
                    (SomeOfLog. (apply max end (second (:covered value)) (map (comp inc first) (:records value)))
                                after)
                    (model/inconsistent "other records are there")))
        :end    (if (< value end)
                  (model/inconsistent (str "the end is at least " end))
                  (SomeOfLog. value contents))))))

(defn start
  "The model in its initial state; of several registers `flat` begins with that, key and value, `initial` times."
  [model initial flat]
  (case model
    "register"        (model/register initial)
    "cas-register"    (model/cas-register initial)
    "multi-register"  (model/multi-register (into {} (map vec) (take initial (partition 2 flat))))
    "mutex"           (model/mutex)
    "set"             (Elements. #{})
    "unordered-queue" (Bag. (multiset/multiset))
    "fifo-queue"      (Fifo. PersistentQueue/EMPTY)
    "log"             (Log. initial [])
    "some-of-log"     (SomeOfLog. initial {})))

(def memoise memo/memo)

(defn leave-alone [model history] {:model model :history history})

; To list every way in which the last operation fails can cost hundreds of times the decision, and cannot be stopped.
; What is wanted of it is which operation could not be placed, and in which states the search was when it got stuck.
(def most-states 8)
(def most-shown 32)

(defn contents
  "[how many, the first of them] of what a model's state holds, `nothing` for nil."
  [state nothing]
  (let [held (condp instance? state
               Register      [(:value state)]
               CASRegister   [(:value state)]
               MultiRegister (flatten (sort (seq state)))
               Mutex         [(if (:locked? state) 1 0)]
               Elements      (sort (:there state))
               Bag           (sort (seq (:pending state)))
               Fifo          (seq (:pending state))
               Log           (:values state)
               SomeOfLog     (flatten (sort (:contents state)))
               nil)]
    (into [(count held)] (map #(if (integer? %) % nothing)) (take most-shown held))))

(defn stuck
  "A configuration as [contents, rows that were open and have their place, rows that were open and have none yet]."
  [open nothing ^CacheConfig config]
  (let [placed? #(.get ^java.util.BitSet (wgl/linearized config) (int (:entry-id %)))
        rows (fn [ops] (into [] (comp (map :process) (take most-shown)) ops))]
    [(contents (memo/unwrap (.model config)) nothing)
     (rows (filter placed? open))
     (rows (remove placed? open))]))

(def ^:dynamic *nothing* nil)

(defn verdict-only [history configs state]
  (let [highest (wgl/highest-contiguous-linearized-entry-id configs)
        [invoke ok] (wgl/invoke-and-ok-for-entry-id history (inc highest))
        open (wgl/concurrent-ops-at history ok)
        furthest (wgl/configurations-which-linearized-up-to highest configs)]
    {:valid? false
     :row (:process invoke)
     :states (into [] (comp (map #(stuck open *nothing* %)) (distinct) (take most-states)) furthest)}))

(alter-var-root #'wgl/invalid-analysis (constantly verdict-only))

(defn value-of
  "What an operation's columns say, by its shape."
  [shape a b ^longs flat nothing empty]
  (case (int shape)
    0 nil
    1 (cond (= a nothing) nil (= a empty) :empty :else a)
    2 [a b]
    3 (into #{} (map #(aget flat (int %))) (range a b))
    4 [a (when-not (= b nothing) b)]
    5 (let [[from to & records] (map #(aget flat (int %)) (range a b))]
        {:covered [from to]
         :records (mapv (fn [[offset what foreign]] [offset what (= 1 foreign)]) (partition 3 records))})
    6 (mapv (fn [[writes k v]] [(if (= 1 writes) :write :read) k (when-not (= v nothing) v)])
            (partition 3 (map #(aget flat (int %)) (range a b))))))

(defn events
  "A history of Knossos from columns. `order`: rows in the order of events, a completion as -1 - row, and of what never
  returned another one at the end. Every operation is a process of its own: only real time relates them."
  [fs ^longs shapes ^longs f ^longs a ^longs b ^longs flat ^longs order ^longs never nothing empty]
  (let [fs (mapv keyword fs)
        never (into #{} never)
        event (fn [index at]
                (let [row (int (if (neg? at) (- -1 at) at))
                      kind (aget f row)
                      value (value-of (aget shapes kind) (aget a row) (aget b row) flat nothing empty)
                      type (cond (not (neg? at)) :invoke (never row) :info :else :ok)]
                  (op/->Op row type (nth fs kind) value index)))]
    (into [] (map-indexed event) (concat order (map #(- -1 %) (sort never))))))

(defn check
  "[valid? row states]: 1 linearizable, 0 not (and the operation for which there was no place), -1 unknown."
  ; A Boolean that comes from outside may be another `false` than Clojure's, and then counts as true.
  [model initial memo? & columns]
  (alter-var-root #'memo/memo (constantly (if (.booleanValue ^Boolean memo?) memoise leave-alone)))
  (binding [*nothing* (last (butlast columns))]
    (let [result (wgl/check (start model initial (nth columns 5)) (apply events columns) (atom {:running? true}))]
      (case (:valid? result)
        true  [1 -1 []]
        false [0 (or (:row result) -1) (or (:states result) [])]
        [-1 -1 []]))))
