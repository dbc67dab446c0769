/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/*
 * Declarations that the parts of the pass share. The order of work:
 *
 *   at the start of the pipeline     outline.cpp  a block of `activate` becomes a function
 *                                    twins.cpp    each function that may yield gets a twin, with markers where it
 *                                                 yields, and around calls
 *                                    names.cpp    calls by name of functions that the linker chooses
 *                                    marks.cpp    superfluous markers around calls are removed; again before the
 *                                                 next two
 *   before loops are vectorized      strips.cpp   a counted loop becomes strips, with a marker between them
 *   at the end                       lower.cpp    markers become checks; variables whose address other code may hold
 *                                                 move to the heap
 *   when linked with -flto           prune.cpp    twins call twins of other files directly; functions that no
 *                                                 activity can reach lose their twins
 *
 * A marker is a call of an undefined function that may read and write memory. So the optimizer keeps nothing in a
 * register across a yield that another activity could change. Markers are removed at the end, and leave a load and a
 * branch.
 */
#ifndef WEFT_ACTIVITIES_PASS_H
#define WEFT_ACTIVITIES_PASS_H

#include "llvm/IR/Function.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/PassManager.h"

#include <string>
#include <vector>

namespace weft
{
using namespace llvm;

/* Functions that the header calls (include/weft/detail/activity.h), by their names for the linker. */
inline constexpr char Activate[] = "weft_needs_cc_with_activities__activate";
inline constexpr char Activated[] = "weft_needs_cc_with_activities__activated";
inline constexpr char NoYieldBegin[] = "weft_needs_cc_with_activities__no_yield";
inline constexpr char NoYieldEnd[] = "weft_needs_cc_with_activities__no_yield_end";
inline constexpr char NoImplicitBegin[] = "weft_needs_cc_with_activities__no_implicit";
inline constexpr char NoImplicitEnd[] = "weft_needs_cc_with_activities__no_implicit_end";
inline constexpr char Park[] = "weft__activity_park";
inline constexpr char Yield[] = "weft_activity_yield";
inline constexpr char GiveWay[] = "weft_activity_give_way";

/* Markers of the pass's own. */
inline constexpr char EntryMark[] = "weft.entry.mark";
inline constexpr char LoopMark[] = "weft.loop.mark";
inline constexpr char CallMark[] = "weft.call.mark";   /* before or after a call, or at the entry */
inline constexpr char YieldMark[] = "weft.yield.mark"; /* an explicit yield */

/* Functions that lowered code calls (src/activity/x86_64.S). */
inline constexpr char ParkNow[] = "weft__activity_park_now";   /* keeps no register */
inline constexpr char YieldNow[] = "weft__activity_yield_now"; /* keeps no register */
inline constexpr char ParkKept[] = "weft__activity_park_kept"; /* keep the same registers as weft__activity_tick */
inline constexpr char YieldKept[] = "weft__activity_yield_kept";
inline constexpr char Tick[] = "weft__activity_tick"; /* keeps all registers but r11 and vectors */
/* keeps the same; must the call continue elsewhere? */
inline constexpr char Entered[] = "weft__activity_entered";
/* keeps the same; must it continue in another stack? */
inline constexpr char EnteredWhole[] = "weft__activity_entered_whole";
inline constexpr char Pin[] = "weft__activity_pin"; /* frames outside of this frame stay in place, until */
inline constexpr char Unpin[] = "weft__activity_unpin";
/* Calls the function that the register of nested functions points to, or its twin, if it has one. */
inline constexpr char Pointer[] = "weft__activity_pointer";
/* The twin of the function that its argument points to, or that function. */
inline constexpr char TwinOf[] = "weft__activity_twin";
/* Replaces the first word of the slot at r11, this function, by the twin of the second word, and jumps there. */
inline constexpr char Resolve[] = "weft__activity_resolve";
/* Registers an ifunc by three words: the runtime's own, the ifunc's address, its resolver. */
inline constexpr char IFunc[] = "weft__activity_ifunc";
inline constexpr char Fresh[] = "weft__activity_fresh";
inline constexpr char Spawn[] = "weft__activity_spawn";
inline constexpr char Block[] = "weft__activity_block";
inline constexpr char Unblock[] = "weft__activity_unblock";
inline constexpr char Push[] = "weft__activity_push";
inline constexpr char Pop[] = "weft__activity_pop";
inline constexpr char Hot[] = "weft__activity_hot";

/*
 * Each object with code of the pass needs this symbol of the runtime (src/activity/group.c). Change the number in both
 * places whenever the interface of code and runtime changes: functions, registers, offsets, the words in front of a
 * function. Then code compiled before does not link or start, and the name says why.
 */
inline constexpr char Version[] = "weft_activities_version_4__compile_again_with_the_weft_you_link";

/* Offsets in struct weft__activity_hot. */
enum { HotLimit = 0, HotFlag = 8, HotArguments = 12, HotTarget = 16, HotBytes = 48 };

/* In front of a function that has a twin: 8 bytes of this number, 4 of the twin's distance, 4 of 0. These 16 bytes are
 * aligned to FrontAlignment, so the function begins at an odd multiple of 16, and the bytes are on its page. */
inline constexpr uint64_t Magic = 0x7461706e66746577;
inline constexpr uint64_t FrontBytes = 16, FrontAlignment = 32;

inline constexpr char TwinAttribute[] = "weft-twin"; /* its value: YieldsAround, or nothing */
inline constexpr char YieldsAround[] = "around-calls";
/* A twin has this attribute if it yields before any other action. */
inline constexpr char EntryAttribute[] = "weft-yields-at-entry";
/* Attribute of a call that may yield, and needs room for frames of twins. */
inline constexpr char YieldsAttribute[] = "weft-yields";
inline constexpr char Suffix[] = ".yielding";
/* A function has this attribute if it jumps to the definition that the linker chose, or to that definition's twin. */
inline constexpr char EitherSuffix[] = ".either";
inline constexpr char EitherAttribute[] = "weft-either";

inline bool calls(const Instruction &I, StringRef Name)
{
	auto *Call = dyn_cast<CallBase>(&I);
	auto *Callee = Call ? Call->getCalledFunction() : nullptr;

	return Callee && Callee->getName() == Name;
}

/* Does a twin yield around calls? */
inline bool yieldsAround(const Function &F)
{
	return F.getFnAttribute(TwinAttribute).getValueAsString() == YieldsAround;
}

/* Annotations of a module's functions. */
enum { SaysNoYield = 1, SaysNoImplicit = 2 };

/* memcpy, memmove or memset of many bytes, or of a number that is not known? */
bool isLong(const IntrinsicInst &I);
/* An error at an instruction; code generation stops after it. */
void error(const Instruction &At, const Twine &Message);
/* C++'s inline functions and templates: the definitions of all files do the same. */
inline bool alike(const GlobalValue &V)
{
	return V.hasLinkOnceODRLinkage() || V.hasWeakODRLinkage();
}

/* May the linker choose a definition that does something else? */
bool replaceable(const GlobalValue &V);
/* Can words be placed in front of F? If not, there was an error. */
bool hasWordsInFront(Function &F);
/* A function of type T that jumps to the twin of the definition of V that the linker chooses. */
Function *either(GlobalValue &V, FunctionType *T);
/* The V that a function of either() jumps to; null: it is another function. */
GlobalValue *chosenBy(const Function &Either);
/* LLVM's linker crashes if a module of -flto has a pointer to an ifunc of its own. Such ifuncs are plain. */
bool mayPointToIFuncs(Module &M);
/* Registers the module's ifuncs without words in front, because their addresses may be entries of the PLT. */
void announceIFuncs(Module &M);
/* A declaration of a function of the runtime. */
FunctionCallee runtime(Module &M, StringRef Name, Type *Result, ArrayRef<Type *> Parameters);
/* weft__activity_hot, and a field of it. */
GlobalVariable *hot(Module &M);

struct Body {
	Function *F;
	CallInst *Spawn; /* its call, with the shared variables as arguments */
	Value *Handle;
};

/* Makes a function of each block of `activate`. False: there was an error, and the module must not be used. */
bool outlineActivities(Module &M, function_ref<void(Body &)> Made);
/* The places where yields are inserted: before and after each call and on back-edges, or on back-edges and at the
 * entries of twins. The command line says which (plugin.cpp). */
enum class Inserted { Calls, Loops };
Inserted inserted();
/* Removes superfluous markers around calls. `EntryYields`: a check comes at the function's entry. */
bool settleMarks(Function &F, bool EntryYields);
/* True: the module has changed. */
bool makeTwins(Module &M, FunctionAnalysisManager &FAM);

struct Strips : PassInfoMixin<Strips> {
	PreservedAnalyses run(Function &F, FunctionAnalysisManager &FAM);
};
struct Choose : PassInfoMixin<Choose> {
	PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM);
	static bool isRequired()
	{
		return true;
	}
};
struct Lower : PassInfoMixin<Lower> {
	PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM);
	static bool isRequired()
	{
		return true;
	}
};
struct Join : PassInfoMixin<Join> {
	PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM);
	static bool isRequired()
	{
		return true;
	}
};
struct Prune : PassInfoMixin<Prune> {
	PreservedAnalyses run(Module &M, ModuleAnalysisManager &MAM);
};
} // namespace weft

#endif
